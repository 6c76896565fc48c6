"""Interoperation: models of other tools read and written, and adapters that other libraries plug in.

original_elmo     options.json and weights.hdf5 of bilm-tf and AllenNLP, both ways
many_langs        the directories of ELMoForManyLangs, read
imported          what both make: a model directory with its character CNN
"""
