"""Files: how they are read without trust in what they say, and how they appear whole.

compression  plain and compressed files, opened for their bytes
text         lines of text, read and written
arrays       NumPy arrays, read and written
writing      files and directories that appear whole, by one writer at a time
records      JSON and TOML, read into typed dataclasses
hdf5         HDF5 files, for reading
checksums    hashes by which content is known, and by which damage is found
"""
