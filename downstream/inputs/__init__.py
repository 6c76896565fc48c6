"""Inputs of a probe: layer states and word vectors of its sentences."""
