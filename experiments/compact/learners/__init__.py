"""Learners of compact word vectors: from the vectors of many words to a file of a few
bytes a word.
"""
