"""Building vector tables: word vectors are looked up for the lexicon of a corpus,
transformed, and written.

The raw vectors of the lexicon are looked up block by block into a temporary file, the
transform is fitted to them (each word weighted by its training count; `<s>` and `</s>`
are left out, which are not words and as frequent as sentences), and the transformed
rows are written as a table.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta

from data_scripts.parts.workers import Workers, parallel_map
from elmoc.command_line import run_main
from elmoc.corpus import SOURCE_NAME, Corpus
from elmoc.errors import InputError, human_bytes, say, shortened, warn
from elmoc.files.arrays import all_finite
from elmoc.files.writing import locked, temporary_path
from elmoc.process import available_cores, progress_bar
from elmoc.word_vectors.opening import open_word_vectors, origin_in
from elmoc.word_vectors.sources import TransformKind, check_vectors
from elmoc.word_vectors.table import Dtype, write_vector_table
from elmoc.word_vectors.transform import (
    MANY,
    boundary_vectors,
    decomposed,
    fit_transform,
)

# Share of words without a vector that nobody expects.
_TOO_MANY = 0.1
# Words that are looked up, or transformed, at once: five megabytes at 300 numbers each.
_BLOCK_ROWS = 4096


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How a vector table is made of word vectors."""

    corpus: Annotated[
        Path, Meta(description="corpus directory of words", extra={"metavar": "CORPUS"})
    ]
    origin: Annotated[
        str,
        Meta(
            description="fastText .bin, text .vec or .txt (also .gz), an imported ELMo "
            "(its directory), or random:SEED:SIZE",
            extra={"metavar": "VECTORS"},
        ),
    ]
    name: Annotated[
        str,
        Meta(
            pattern=rf"^{SOURCE_NAME}$",
            description="name of the table",
            extra={"option": "--name"},
        ),
    ]
    dtype: Annotated[
        Dtype,
        Meta(description="type of the numbers on disk", extra={"metavar": "DTYPE"}),
    ] = "float16"
    transform: Annotated[
        TransformKind,
        Meta(
            description="how the vectors are processed",
            extra={"option": "--post-process"},
        ),
    ] = "none"
    like: Annotated[
        str | None,
        Meta(
            description="transform the vectors as those of this model or run "
            "directory, with the numbers fitted then (needed for "
            "--init-from on a new corpus)",
            extra={"metavar": "MODEL"},
        ),
    ] = None
    workers: Workers = field(default_factory=available_cores)

    def __post_init__(self) -> None:
        if self.transform != "none" and self.like is not None:
            raise InputError(
                "--post-process and --like exclude each other: leave one out"
            )


def build_vectors(options: TableOptions) -> None:
    """Make a vector table of a corpus, [V, E].

    Raises:
        InputError: the table exists or is being written, the vectors cannot be used, or
            a value is not finite in the options' type of numbers.
    """
    corpus = Corpus(options.corpus)
    corpus.require_words()
    description = corpus.path / "vectors" / f"{options.name}.json"
    with locked(description, new=True):
        # It is recorded, and opened again from anywhere.
        origin = origin_in(Path.cwd(), options.origin)
        vectors = open_word_vectors(origin, only=set(corpus.lexicon))
        fitted = None
        post_processing = options.transform
        if options.like is not None:
            # PyTorch is only needed here.
            from elmoc.model_directory import read_model_directory

            model = read_model_directory(options.like, output_layers=False)
            check_vectors(vectors, model.word_vectors)
            fitted = model.transform
            post_processing = model.word_vectors.post_processing
        shape = (corpus.types, vectors.size)
        with (
            temporary_array(description, "raw", shape, "float32") as raw,
            temporary_array(description, "rows", shape, options.dtype) as rows,
        ):
            blocks = _blocks(corpus.types)
            bar = progress_bar(
                iterable=parallel_map(
                    lambda block: vectors.lookup(corpus.lexicon[block]),
                    blocks,
                    options.workers,
                ),
                desc="looking up",
                total=len(blocks),
                unit=" blocks",
            )
            for found, block in zip(bar, blocks, strict=True):
                raw[block] = found
            if fitted is None:
                word_counts = corpus.counts.copy()
                word_counts[[corpus.begin_id, corpus.record.end_id]] = 0
                ends = np.cumsum(getattr(vectors, "widths", [vectors.size]))
                norms = list(map(mean_norm, np.split(raw, ends[:-1], axis=1)))
                boundaries = boundary_vectors(vectors, norms)
                fitted = fit_transform(options.transform, raw, word_counts, boundaries)
            for block in blocks:
                # A value that is too large becomes infinite, which is told below.
                with np.errstate(over="ignore"):
                    rows[block] = fitted.apply(corpus.lexicon[block], raw[block])
            if not all_finite(rows):
                raise InputError(
                    f"a vector of {origin} has a value too large for {options.dtype}: "
                    "use --dtype float32"
                )
            write_vector_table(
                corpus,
                options.name,
                rows=rows,
                vectors=vectors,
                transform=fitted,
                post_processing=post_processing,
            )
            report(corpus, options.name, rows, origin)


def _blocks(rows: int) -> list[slice]:
    return [slice(start, start + _BLOCK_ROWS) for start in range(0, rows, _BLOCK_ROWS)]


@contextmanager
def temporary_array(
    table: Path, what: str, shape: tuple[int, int], dtype: str
) -> Iterator[np.ndarray]:
    """An array in a file beside the `table`, shared with forked workers, removed at the
    end.
    """
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    with temporary_path(table, what) as path:
        # Its blocks are taken on the disk at once: a memory map that meets a full disk
        # ends the process.
        with open(path, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
        yield np.memmap(path, dtype=dtype, mode="r+", shape=shape)


def mean_norm(raw: np.ndarray) -> float:
    """Mean length of the rows of `raw` [V, E] that are not zero; 1 where all are."""
    norms = [
        np.linalg.norm(raw[block].astype(np.float64), axis=1)
        for block in _blocks(len(raw))
    ]
    used = sum(map(np.count_nonzero, norms))
    return float(sum(map(np.sum, norms)) / used) if used else 1.0


def report(corpus: Corpus, name: str, rows: np.ndarray, origin: str) -> None:
    """Print what was made, and how many words have no vector: they are read as zeros,
    and never predicted. Warn where they are many, and of text in another normal form,
    for whose words fastText makes vectors of their n-grams.
    """
    tokens = max(1, corpus.counts.sum())
    zero = ~rows.any(axis=1)
    zero_tokens = corpus.counts[zero].sum() / tokens
    say(
        f"{corpus.path}/vectors/{name}.npy: {rows.shape[0]:,} × {rows.shape[1]} "
        f"{rows.dtype} ({human_bytes(rows.nbytes)}); {zero.sum():,} zero rows "
        f"({zero_tokens:.2%} of the training tokens)"
    )
    others = decomposed(corpus.lexicon)
    other_tokens = sum(corpus.counts[corpus.ids[word]] for word in others) / tokens
    if other_tokens > MANY:
        warn(
            f"{other_tokens:.2%} of the training tokens, such as "
            f"{shortened(others[0])!r}, are not in Unicode's normal form NFC: unless "
            f"{origin} is in the same form, convert the text, e.g. by `uconv -x "
            "any-nfc`, and all that the model will read"
        )
    elif zero_tokens > _TOO_MANY:
        warn(
            f"{zero_tokens:.2%} of the training tokens have no vector in "
            f"{origin}: it may be for another language, spelling, tokenisation or "
            "Unicode normal form than the text's"
        )


main = partial(
    run_main,
    TableOptions,
    build_vectors,
    prog="python -m data_scripts.build_vectors",
    description="Make CORPUS/vectors/NAME.npy: the word vectors of every word type "
    "of the corpus.",
)

if __name__ == "__main__":
    sys.exit(main())
