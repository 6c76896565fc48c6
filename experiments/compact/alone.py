"""ALONE (Takase and Kobayashi 2020, Figure 3): word similarity and error by the width
of its network.

    python -m experiments.compact.alone OUT --vectors FILE --words LEXICON --data DIR
"""

from elmoc.files.text import read_lines
from experiments.compact.common import (
    PAIRS,
    Options,
    lexicon,
    row,
    run_table,
    similarity,
)

# Takase and Kobayashi (2020), Section 3.1: 5,000 words and 1,000 epochs.
WORDS = 2_000
EPOCHS = 150
# The pairs all of whose words are among them: to others ALONE gives vectors, too.
LEARNED = PAIRS[:3]
# As many weights a word as the paper's 600 to 2,400.
INNER_SIZES = (240, 480, 720, 960)


def alone(options: Options) -> None:
    """Print the table."""
    chosen: dict[str, None] = {}
    # The words that are compared have a row in any case.
    for pairs in LEARNED:
        for line in read_lines(options.data / f"wordsim/{pairs}.txt"):
            chosen |= dict.fromkeys(line.split()[:2])
    chosen |= dict.fromkeys(lexicon(options)[0])
    (options.out / "alone.words").write_text("\n".join(list(chosen)[:WORDS]) + "\n")
    print("whole", similarity(options, "whole", options.vectors, LEARNED))
    for size in INNER_SIZES:
        for kind in ("real", "binary"):
            print_row(options, size, [kind])
    for kind in ("real", "binary"):
        print_row(options, INNER_SIZES[1], [kind, "--fixed-base"])


def print_row(options: Options, size: int, filters: list[str]) -> None:
    """Learn the network with an inner size, and print its row."""
    name = f"alone{size}{''.join(filters)}"
    made = options.out / f"{name}.safetensors"
    command = ["experiments.compact.learners", "alone", options.vectors, made]
    command += ["--words", options.out / "alone.words", "--inner-size", size]
    command += ["--epochs", EPOCHS, "--filter", *filters]
    error = row(options.out, name, command)[1]
    # Of the base vector and both matrices, at E = D_o = 300.
    weights = (300 + 600 * size) / 1e6
    found = similarity(options, name, made, LEARNED)
    print(f"{name}: {weights:.2f}M, {error}; {found}", flush=True)


if __name__ == "__main__":
    run_table(alone, "Word similarity of ALONE by its size.")
