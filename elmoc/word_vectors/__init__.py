"""Word vectors: fixed functions from any string to a vector, their transforms, and
tables of a lexicon.
"""
