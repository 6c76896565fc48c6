"""Tables of three papers on compact word vectors, in miniature: a script each.

The figures show shapes alone: with other vectors, less text and fewer steps than in the
papers.
"""
