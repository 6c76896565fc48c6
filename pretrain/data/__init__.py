"""Training data: from token shards to batches of vectors on the device."""
