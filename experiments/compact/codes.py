"""Compositional codes (Shu and Nakayama 2018, Table 2): losses by the number and size
of codebooks.

    python -m experiments.compact.codes OUT --vectors FILE --words LEXICON --data DIR
"""

from experiments.compact.common import (
    WORDS,
    Options,
    bytes_a_word,
    learn_codes,
    run_table,
)

# M x K: the loss with 75,102 GloVe vectors, at second hand: the text of the paper at
# hand has lost the table.
CODES = {
    "8x64": 21.9,
    "16x32": 20.4,
    "32x16": 19.1,
    "64x8": 15.5,
    "8x8": 29.1,
    "8x16": 27.0,
    "8x32": 24.4,
    "16x8": 25.8,
    "16x16": 22.8,
    "32x8": 21.9,
    "16x64": 16.9,
    "32x32": 14.3,
    "64x16": 11.5,
}


def codes(options: Options) -> None:
    """Print the table."""
    for cell, paper in CODES.items():
        lines = learn_codes(options, cell)
        size = bytes_a_word(options.out / f"codes{cell}.safetensors", WORDS)
        # The first line tells how codes are used, the last one the loss.
        print(
            f"{cell:6} {size:6.1f} bytes, paper's loss {paper}; {lines[-1]}\n"
            f"       {lines[0]}",
            flush=True,
        )


if __name__ == "__main__":
    run_table(codes, "Losses of compositional codes, beside the paper's.")
