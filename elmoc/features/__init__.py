"""Feature files: layer states dumped to HDF5, and read back."""
