"""Probes: task models on frozen features, which show what the features are worth."""
