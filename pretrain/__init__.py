"""Training a contextual encoder: from a corpus directory to a model directory."""
