"""Looking: what an encoder makes of one word in its contexts, as a list of nearest uses or as a picture.

uses          the uses of a word in a text, their vectors, and the nearest to a given one
clusters      groups of uses, and the words around them that tell them apart
picture       all of them in two dimensions
"""
