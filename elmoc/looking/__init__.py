"""Looking: what an encoder makes of one word in its contexts, as a list of nearest uses
or as a picture of all.
"""
