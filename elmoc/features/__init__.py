"""Feature files: layer states dumped to HDF5, and read back."""

# Forms on disk; `elmoc.features.layouts.LAYOUTS`, which loads HDF5's library, has their
# readers and writers.
LAYOUT_NAMES = ("allennlp", "bilm", "e2e-coref", "flat")
