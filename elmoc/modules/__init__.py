"""Modules: what puts an `ElmoC` into a PyTorch model of one's own.

layer_states    the layer states of a batch, computed by a frozen encoder or by one that is trained on
scalar_mix      the trained weighting of layers
embedding       `ElmoEmbedding`: both together, with dropout
"""
