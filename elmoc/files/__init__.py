"""Files: how text, records and arrays are opened and checked, and written whole or not at all.

    text        text files, plain and compressed
    records     JSON and TOML, read into typed dataclasses
    arrays      `.npy` files
    archives    zip archives that PyTorch wrote
    hdf5        HDF5 files, for reading
    checksums   hashes by which content is known, and by which damage is found
    writing     files and directories that appear whole, under a lock, on a disk that may be full
    locks       one writer at a time

A file is opened here unless its format has a module of its own, so that one that is missing, truncated, damaged or of
another version is an `InputError` that names it and says what to do.
"""
