"""Dumping: how files of sentences become feature files.

dump       the assembly of all that follows
options    what is dumped
input      text, documents and standard input, and what is counted beforehand
buffers    the sentences that are encoded together, each for itself or with the state carried
pipeline   three stages in three threads: reading, encoding, writing
ranks      several processes
"""
