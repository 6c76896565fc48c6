"""Limits: the sizes that are read; they bound what a reader allocates, whatever a file
says of itself.
"""

# Bytes of an array that is unpacked, or arranged, at once: 40,000 words of the paper's
# layer states.
MOST_BYTES = 1 << 29
# Bytes of a JSON file: as objects it takes up to thirty times as much.
MOST_RECORD_BYTES = 1 << 23
# Bytes of a TOML file: its reader takes the square of the number of dots in a key,
# which is two seconds for 16,000 dots.
MOST_TOML_BYTES = 1 << 15
# Sentences of a feature file: they are looked at one by one.
MOST_SENTENCES = 1 << 22
# Words of a sentence in a feature file.
MOST_WORDS = 40_000
# Bytes of a line of text: its reader keeps it in memory several times.
MAX_LINE_BYTES = 1 << 24
