"""Sharing: the model card of a model directory, and models by their name on a hub."""
