"""Building vector tables: word vectors are looked up for the lexicon of a corpus,
transformed, and written.

The raw vectors of the lexicon are looked up block by block into a temporary file, the
transform is fitted to them (each word weighted by its training count; `<s>` and `</s>`
are left out, which are not words and as frequent as sentences), and the transformed
rows are written as a table.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from data_scripts.parts.workers import add_workers, parallel_map
from elmoc.corpus import Corpus
from elmoc.errors import InputError, human_bytes, run_command
from elmoc.files.arrays import all_finite
from elmoc.files.writing import locked, refuse_existing, temporary_path
from elmoc.process import progress_bar
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.sources import (
    TRANSFORMS,
    RandomVectors,
    WordVectors,
    check_vectors,
)
from elmoc.word_vectors.table import DTYPES, write_vector_table
from elmoc.word_vectors.transform import boundary_vectors, fit_transform

_BLOCK_ROWS = 4096


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.build_vectors",
        description="Make CORPUS/vectors/NAME.npy: the word vectors of every word type of the corpus.",
    )
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="corpus directory")
    parser.add_argument(
        "origin",
        metavar="VECTORS",
        help="fastText .bin, text .vec or .txt (also .gz), an imported ELMo (its directory), or random:SEED:SIZE",
    )
    parser.add_argument(
        "--name", required=True, metavar="NAME", help="name of the table"
    )
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default="float16",
        help="type of the numbers on disk (%(default)s)",
    )
    processing = parser.add_mutually_exclusive_group()
    processing.add_argument(
        "--post-process",
        dest="transform",
        default="none",
        metavar="WHAT",
        help=f"{', '.join(TRANSFORMS)} (default: %(default)s)",
    )
    processing.add_argument(
        "--like",
        metavar="MODEL",
        help="transform the vectors as those of this model or run directory, with the numbers fitted then (needed for "
        "--init-from on a new corpus)",
    )
    add_workers(parser)
    options = vars(parser.parse_args(argv))
    return run_command(lambda: build_vectors(Corpus(options.pop("corpus")), **options))


def build_vectors(
    corpus: Corpus,
    origin: str,
    *,
    name: str,
    dtype: str = "float16",
    transform: str = "none",
    workers: int = 1,
    like: str | None = None,
) -> None:
    """Make the vector table `name` of `corpus` from the word vectors that `origin`
    names.

    `like` names a model directory whose transform (boundary vectors, mean, matrix) is
    used instead of a fitted one. Raises `InputError` for a table that exists or is
    being written, vectors that cannot be used, and values that are not finite in
    `dtype`.
    """
    if transform not in TRANSFORMS:
        raise InputError(
            f"unknown transform {transform!r}: choose from {', '.join(TRANSFORMS)}"
        )
    description = corpus.path / "vectors" / f"{name}.json"
    with locked(description):
        refuse_existing(description)
        if not origin.startswith("random:"):
            origin = str(
                Path(origin).absolute()
            )  # it is recorded, and opened again from anywhere
        vectors = open_vectors(origin, corpus)
        fitted = None
        post_processing = transform
        if like is not None:
            from elmoc.model_directory import (
                read_model_directory,
            )  # PyTorch is only needed here

            model = read_model_directory(like)
            check_vectors(vectors, model.word_vectors)
            fitted = model.transform
            post_processing = model.word_vectors.post_processing
        words = corpus.lexicon
        shape = (corpus.types, vectors.size)
        with (
            temporary_array(description, "raw", shape, "float32") as raw,
            temporary_array(description, "rows", shape, dtype) as rows,
        ):

            def look_up(block: slice) -> None:
                raw[block] = vectors.lookup(words[block])

            blocks = [
                slice(start, start + _BLOCK_ROWS)
                for start in range(0, len(words), _BLOCK_ROWS)
            ]
            looked_up = parallel_map(look_up, blocks, workers)
            list(
                progress_bar(
                    iterable=looked_up,
                    desc="looking up",
                    total=len(blocks),
                    unit=" blocks",
                )
            )
            if fitted is None:
                word_counts = corpus.counts.copy()
                word_counts[[corpus.begin_id, corpus.end_id]] = 0
                fitted = fit_transform(
                    transform,
                    raw,
                    word_counts,
                    boundary_vectors(vectors, mean_norm(raw)),
                )
            for block in blocks:
                with np.errstate(over="ignore"):  # what is too large is not finite then
                    rows[block] = fitted.apply(words[block], raw[block])
            if not all_finite(rows):
                raise InputError(
                    f"a vector of {origin} has a value too large for {dtype}: use --dtype float32"
                )
            write_vector_table(
                corpus,
                name,
                rows=rows,
                vectors=vectors,
                transform=fitted,
                post_processing=post_processing,
            )
            report(corpus, name, rows)


def open_vectors(origin: str, corpus: Corpus) -> WordVectors:
    """The word vectors; an `InputError` where they are of words and the corpus is one
    of subwords.
    """
    vectors = open_word_vectors(origin, only=set(corpus.lexicon))
    if corpus.record.subwords and not isinstance(vectors, RandomVectors):
        from elmoc.word_vectors.subwords import (
            SubwordVectors,
        )  # PyTorch is only needed here

        if not isinstance(vectors, SubwordVectors):
            corpus.require_words()
    return vectors


@contextmanager
def temporary_array(
    table: Path, what: str, shape: tuple[int, int], dtype: str
) -> Iterator[np.ndarray]:
    """An array in a file beside the `table`, shared with forked workers, removed at the
    end.
    """
    with temporary_path(table, what) as path:
        with (
            open(path, "wb") as file
        ):  # its blocks are on the disk: in a memory map, a full disk would end the process
            os.posix_fallocate(
                file.fileno(), 0, shape[0] * shape[1] * np.dtype(dtype).itemsize
            )
        yield np.memmap(path, dtype=dtype, mode="r+", shape=shape)


def mean_norm(raw: np.ndarray) -> float:
    """Mean length of the rows of `raw` [V, E] that are not zero; 1 where all are."""
    total = 0.0
    used = 0
    for start in range(0, len(raw), _BLOCK_ROWS):
        norms = np.linalg.norm(
            raw[start : start + _BLOCK_ROWS].astype(np.float64), axis=1
        )
        total = total + float(norms.sum())
        used = used + int((norms > 0).sum())
    return total / used if used else 1.0


def report(corpus: Corpus, name: str, rows: np.ndarray) -> None:
    """Print what was made, and how many words have no vector: they are read as zeros,
    and never predicted.
    """
    zero = ~rows.any(axis=1)
    zero_tokens = corpus.counts[zero].sum() / max(1, corpus.counts.sum())
    print(
        f"{corpus.path}/vectors/{name}.npy: {rows.shape[0]:,} × {rows.shape[1]} {rows.dtype} "
        f"({human_bytes(rows.nbytes)}); {zero.sum():,} zero rows ({zero_tokens:.2%} of the training tokens)"
    )


if __name__ == "__main__":
    sys.exit(main())
