"""Layouts of feature files: a writer and a reader of each on-disk form."""
