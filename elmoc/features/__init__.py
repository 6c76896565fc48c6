"""Feature files: dumping layer states to HDF5, and reading them."""
