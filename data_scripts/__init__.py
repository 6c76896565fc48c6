"""Data scripts: raw text to a corpus directory with its vector tables, one command a
module.
"""
