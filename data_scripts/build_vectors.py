"""Building vector tables: word vectors are looked up for the lexicon of a corpus, transformed, and written.

The raw vectors of the lexicon are looked up block by block into a temporary file, the transform is fitted to them (each
word weighted by its training count; `<s>` and `</s>` are left out, which are not words and as frequent as sentences),
and the transformed rows are written as a table.
"""

import argparse
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_scripts.parts.options import Options
from data_scripts.parts.workers import default_workers, parallel_map
from elmoc.corpus import Corpus
from elmoc.errors import InputError, run_command
from elmoc.files.locks import locked
from elmoc.files.writing import human_bytes, require_space, reserve_space, temporary_path
from elmoc.progress import progress_bar
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.sources import RandomVectors, WordVectors, check_vectors
from elmoc.word_vectors.table import DTYPES, write_vector_table
from elmoc.word_vectors.transform import TRANSFORMS, TransformKind, VectorTransform, boundary_vectors

_BLOCK_ROWS = 4096
_MANY_ZERO_TOKENS = 0.02  # share of the training tokens from which a warning is due
_FEW_WITH_CAPITAL = 0.01  # share of the training tokens with capital letters that have a vector
_LOWER_CASED = (
    "; most of them have capital letters, which these vectors are without (as most of GloVe's): take others, or "
    "lower-case the text, here and wherever the model is used"
)


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
    parser.add_argument("--name", required=True, metavar="NAME", help="name of the table")
    parser.add_argument("--dtype", choices=DTYPES, default="float16", help="of the numbers on disk (%(default)s)")
    processing = f"{TRANSFORMS} (default: %(default)s)"
    parser.add_argument("--post-process", dest="transform", default="none", metavar="WHAT", help=processing)
    parser.add_argument(
        "--like",
        metavar="MODEL",
        help="process as the word vectors that this model or run directory reads were processed, with the numbers "
        "fitted then (what --init-from needs on a new corpus), instead of --post-process",
    )
    parser.add_argument(
        "--like-targets",
        metavar="MODEL",
        help="process as the vectors that this model was trained against were: its output layers go on as they are",
    )
    parser.add_argument("--workers", type=int, default=default_workers(), metavar="N", help="processes (%(default)s)")
    parser.add_argument("--replace", action="store_true", help="replace a table of this name")
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
    replace: bool = False,
    like: str | None = None,
    like_targets: str | None = None,
) -> None:
    """Make the vector table `name` of `corpus` from the word vectors that `origin` names.

    `like` names a model directory whose transform (boundary vectors, mean, matrix) is used instead of a fitted one, and
    `like_targets` one whose target vectors' transform is.
    Raises `InputError` for a table that exists (unless `replace`) or is being written, vectors that cannot be used, and
    values that are not finite in `dtype`.
    """
    Options(workers=workers)
    check_name(name)
    kind = TransformKind.parse(transform)
    if sum((like is not None, like_targets is not None, kind.name != "none")) > 1:
        raise InputError(
            "--like, --like-targets and --post-process all say how the vectors are processed: give one of them"
        )
    description = corpus.path / "vectors" / f"{name}.json"
    with locked(description):
        if description.exists() and not replace:
            table = description.with_suffix(".npy")
            raise InputError(f"{table} exists already: choose another --name or give --replace")
        chosen = None if like is None else Like(like, targets=False)
        if like_targets is not None:
            chosen = Like(like_targets, targets=True)
        _build(corpus, description, origin, dtype=dtype, kind=kind, workers=workers, like=chosen)


class Like(NamedTuple):
    """The model directory whose transform a table gets: that of the vectors that it reads, or of its `targets`."""

    path: str
    targets: bool


def _build(
    corpus: Corpus, description: Path, origin: str, *, dtype: str, kind: TransformKind, workers: int, like: Like | None
) -> None:
    if not origin.startswith("random:"):
        origin = str(Path(origin).absolute())  # it is recorded, and opened again from anywhere
    vectors = open_word_vectors(origin, only=set(corpus.lexicon))
    if corpus.record.subwords and not isinstance(vectors, RandomVectors):
        from elmoc.word_vectors.subwords import SubwordVectors  # PyTorch is only needed here

        if not isinstance(vectors, SubwordVectors):
            corpus.require_words()
    kind.check_width(vectors.size)
    name, transform = description.stem, kind.name
    fitted = None
    if like is not None:
        fitted, transform = transform_of(like, vectors)
    rows_bytes = corpus.types * vectors.size * np.dtype(dtype).itemsize
    require_space(corpus.path, 2 * rows_bytes + 4 * corpus.types * vectors.size)
    shape = (corpus.types, vectors.size)
    with (
        temporary_array(description, "raw", shape, "float32") as raw,
        temporary_array(description, "rows", shape, dtype) as rows,
    ):
        job = _Job(corpus.lexicon, vectors, raw, rows)
        job.run(_look_up, "looking up", workers)
        if fitted is None:
            word_counts = corpus.counts.copy()
            word_counts[[corpus.begin_id, corpus.end_id]] = 0
            fitted = kind.fit(raw, word_counts, boundary_vectors(vectors, mean_norm(raw)))
        job.transform = fitted
        job.run(_transform, "writing", workers)
        record = write_vector_table(
            corpus, name, rows=rows, vectors=vectors, transform=fitted, post_processing=transform
        )
        report(corpus, name, rows, record.zero_rows)


def transform_of(like: Like, vectors: WordVectors) -> tuple[VectorTransform, str]:
    """The transform of a model directory that reads these `vectors`, or was trained against them, and its kind."""
    from elmoc.model_directory import read_model_directory  # PyTorch is only needed here

    model = read_model_directory(like.path)
    if not like.targets:
        check_vectors(vectors, model.word_vectors)
        return model.transform, model.word_vectors.post_processing
    source, transform = model.output_layer.target_vectors(str(model.path)), model.output_layer.transform
    shapes = None if transform is None else {name: array.shape for name, array in transform.arrays.items()}
    if source is None or transform is None or shapes != TransformKind.parse(source.post_processing).shapes(source.size):
        raise InputError(
            f"{like.path} does not say how its target vectors were processed (models of older versions do not): give "
            "--post-process instead"
        )
    check_vectors(vectors, source)
    return transform, source.post_processing


def check_name(name: str) -> None:
    """Raise an `InputError` for a name that a table cannot have."""
    if not re.fullmatch(r"\w[\w.=-]*", name):
        raise InputError(f"--name {name}: use letters, digits, and . = - _ only")


@contextmanager
def temporary_array(table: Path, what: str, shape: tuple[int, int], dtype: str) -> Iterator[np.ndarray]:
    """An array in a file beside the `table`, shared with forked workers, removed at the end."""
    with temporary_path(table, what) as path:
        reserve_space(path, shape[0] * shape[1] * np.dtype(dtype).itemsize)
        yield np.memmap(path, dtype=dtype, mode="r+", shape=shape)


@dataclass
class _Job:
    """What the workers share: they are forked when it is complete, and write into the arrays."""

    words: list[str]
    vectors: WordVectors
    raw: np.ndarray  # float32 [V, E]
    rows: np.ndarray  # [V, E]
    transform: VectorTransform | None = None

    def run(self, step, description: str, workers: int) -> None:
        """Do `step` for every block of rows."""
        global _job
        _job = self
        started = time.perf_counter()
        with progress_bar(desc=description, total=len(self.words), unit="word", unit_scale=True) as bar:
            starts = range(0, len(self.words), _BLOCK_ROWS)
            for done in parallel_map(partial(_do_block, step), starts, workers):
                bar.update(done)
        _job = None
        seconds = time.perf_counter() - started
        print(f"{description}: {len(self.words):,} words in {seconds:.1f} s ({len(self.words) / seconds:,.0f} words/s)")


_job: _Job | None = None


def _do_block(step, start: int) -> int:
    assert _job is not None
    end = min(start + _BLOCK_ROWS, len(_job.words))
    step(_job, start, end)
    return end - start


def _look_up(job: _Job, start: int, end: int) -> None:
    job.raw[start:end] = job.vectors.lookup(job.words[start:end])


def _transform(job: _Job, start: int, end: int) -> None:
    assert job.transform is not None
    transformed = job.transform.apply(job.words[start:end], job.raw[start:end])
    with np.errstate(over="ignore"):
        job.rows[start:end] = transformed
    if not np.isfinite(job.rows[start:end]).all():
        largest = np.abs(transformed).max(axis=1)
        raise InputError(
            f"the vector of {job.words[start + int(largest.argmax())]!r} has a value of {largest.max():,.0f}, "
            f"too large for {job.rows.dtype}: use --dtype float32"
        )


def mean_norm(raw: np.ndarray) -> float:
    """Mean length of the rows of `raw` [V, E] that are not zero; 1 where all are."""
    total, used = 0.0, 0
    for start in range(0, len(raw), _BLOCK_ROWS):
        norms = np.linalg.norm(raw[start : start + _BLOCK_ROWS].astype(np.float64), axis=1)
        total, used = total + float(norms.sum()), used + int((norms > 0).sum())
    return total / used if used else 1.0


def report(corpus: Corpus, name: str, rows: np.ndarray, zero_rows: int) -> None:
    """Print what was made; a warning goes to standard error when many words have no vector."""
    zero_tokens = corpus.counts[~rows.any(axis=1)].sum() / max(1, corpus.counts.sum())
    print(
        f"{corpus.path}/vectors/{name}.npy: {rows.shape[0]:,} × {rows.shape[1]} {rows.dtype} "
        f"({human_bytes(rows.nbytes)}); {zero_rows:,} zero rows ({zero_tokens:.2%} of the training tokens)"
    )
    if zero_tokens > _MANY_ZERO_TOKENS:
        print(
            f"warning: words without a vector make up {zero_tokens:.1%} of the training tokens; they are read as zeros "
            f"and never predicted{_LOWER_CASED * lacks_capitals(corpus, rows)}",
            file=sys.stderr,
        )


def lacks_capitals(corpus: Corpus, rows: np.ndarray) -> bool:
    """Whether it is for their capital letters that most tokens without a vector have none: hardly a word with them has.

    rows: of the table [V, E].
    """
    capital, found = np.array([word != word.lower() for word in corpus.lexicon]), rows.any(axis=1)
    with_capital = corpus.counts[capital & found].sum() / max(1, corpus.counts[capital].sum())
    missing = corpus.counts[capital & ~found].sum() / max(1, corpus.counts[~found].sum())
    return bool(with_capital < _FEW_WITH_CAPITAL and missing > 0.5)


if __name__ == "__main__":
    sys.exit(main())
