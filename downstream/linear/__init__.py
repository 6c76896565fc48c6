"""Linear classifiers on single layers: what is found in each layer of an encoder, without a task model."""
