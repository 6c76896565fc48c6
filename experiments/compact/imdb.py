"""Accuracy with compact vectors (Shu and Nakayama 2018, Table 3): an LSTM on reviews,
and on SST-5, with vectors of the same words kept in many ways.

    python -m experiments.compact.imdb OUT --vectors FILE --words LEXICON --data DIR
"""

from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_matrix, save_npz

from elmoc.files.text import read_lines
from elmoc.word_vectors.coded_rows import CodedRows
from elmoc.word_vectors.compact import CompactVectors
from elmoc.word_vectors.product_quantisation import quantise
from elmoc.word_vectors.stored import LexiconVectors
from experiments.compact.common import (
    Options,
    accuracy,
    bytes_a_word,
    learn_codes,
    lexicon,
    row,
    run_table,
)

# Section 5.2: 25,000 reviews of 400 words, 15 epochs.
REVIEWS = 4_000
READ = 200
EPOCHS = 6
# Accuracy with GloVe vectors in Table 3.
IMDB = {
    "whole": 87.18,
    "pruned80": 86.25,
    "pruned90": 84.96,
    "pq10x256": 86.21,
    "pq60x256": 87.11,
    "codes8x64": 86.66,
    "codes16x32": 87.37,
    "codes32x16": 87.80,
    "codes64x8": 88.15,
}


def write_baseline(file: Path, words: list[str], rows: np.ndarray) -> None:
    """Write whole vectors, or without the smallest numbers (`pruned80`: 80 %), or
    quantised (`pq10x256`), as the name of the file says.
    """
    name = file.stem
    if name.startswith("pq"):
        # Normalised product quantisation (Joulin et al. 2016).
        norms = np.maximum(np.linalg.norm(rows, axis=1), 1e-6)
        books = int(name.removeprefix("pq").split("x")[0])
        codes, codebooks = quantise(rows / norms[:, None], np.ones(len(rows)), books)
        coded = CodedRows("concatenated", codes, codebooks, norms.astype(np.float16))
        CompactVectors.of_words(words, coded).write(file)
        return
    if name.startswith("pruned"):
        share = int(name.removeprefix("pruned")) / 100
        sizes = np.abs(rows)
        rows = np.where(sizes < np.quantile(sizes, share), 0, rows)
        save_npz(file.with_suffix(".npz"), csr_matrix(rows))
    LexiconVectors(torch.from_numpy(rows), words).write(file)


def imdb(options: Options) -> None:
    """Print the table."""
    out = options.out
    words, rows = lexicon(options)
    reviews = list(read_lines(options.data / "imdb/train.jsonl.gz"))
    parts = {
        "train": reviews[:REVIEWS],
        "dev": reviews[12_000:12_500],
        "test": reviews[-REVIEWS:],
    }
    on_reviews: list[object] = ["--words", READ, "--epochs", EPOCHS]
    for part, lines in parts.items():
        file = out / f"{part}.jsonl"
        file.write_text("\n".join(lines) + "\n")
        on_reviews += [f"--{part}", file]
    on_trees: list[object] = ["--subtrees", "none"]
    for part in ("train", "dev"):
        on_trees += [f"--{part}", options.data / f"sst5/{part}.txt.gz"]
    for name, paper in IMDB.items():
        file = out / f"{name}.safetensors"
        if name.startswith("codes"):
            learn_codes(options, name.removeprefix("codes"))
        elif not file.exists():
            write_baseline(file, words, rows)
        for task, more in (("imdb", on_reviews), ("sst5", on_trees)):
            probe = ["downstream", task, "--small", "--vectors", file, "--seeds", 1]
            row(out, f"{task}_{name}", probe + more)
        size = bytes_a_word(file, len(words))
        print(
            f"{name:11} {size:7.1f} bytes, accuracy {accuracy(out, f'imdb_{name}')}, "
            f"paper {paper}; SST-5 {accuracy(out, f'sst5_{name}')}",
            flush=True,
        )


if __name__ == "__main__":
    run_table(imdb, "Accuracy of reviews with compact vectors, beside the paper's.")
