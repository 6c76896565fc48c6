"""Files: how text, records and arrays are opened and checked, and written whole or not at all.

text        text files, plain and compressed
records     JSON and TOML, read into typed dataclasses
arrays      `.npy` files
hdf5        HDF5 files, for reading
checksums   hashes by which content is known, and by which damage is found
writing     files and directories that appear whole, by one writer at a time

No size that a file says is believed beyond these numbers: they bound what a reader allocates, whatever the file.
"""

# bytes of an array that is unpacked, or arranged, at once: 40,000 words at the paper's size
MOST_BYTES = 1 << 29
# bytes of a JSON or TOML file: as objects it takes up to thirty times as much
MOST_RECORD_BYTES = 1 << 23
# sentences of a feature file, which are looked at one by one
MOST_SENTENCES = 1 << 22
# words of a sentence in a feature file
MOST_WORDS = 40_000
