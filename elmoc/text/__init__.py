"""Text as sentences of words: which files hold it, whether it is tokenised, and which
sentences are there twice.
"""
