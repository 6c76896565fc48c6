"""Files: how text, records and arrays are opened and checked, and written whole or not at all.

text        text files, plain and compressed
records     JSON and TOML, read into typed dataclasses
arrays      `.npy` files
hdf5        HDF5 files, for reading
checksums   hashes by which content is known, and by which damage is found
writing     files and directories that appear whole, by one writer at a time
"""
