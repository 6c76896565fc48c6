"""Reading benchmark: how fast feature files are read, in order and at random, by one process and by four workers."""

import multiprocessing
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.features.reader import FeatureFile
from elmoc.features.writer import write_features
from elmoc.files.writing import human_bytes
from elmoc.settings import counted

LAYOUTS = ("allennlp", "flat")
WORKERS = 4
WIDTH, WORDS = 1024, 20
"""Of the top layer at paper size, and of the mean sentence."""


def rows(quick: bool) -> Iterator[tuple[str, str]]:
    """What is measured, and the figure; the files are in the page cache, and are removed."""
    sentences = 500 if quick else 20_000
    with tempfile.TemporaryDirectory(prefix="elmoc-benchmark-") as folder:
        for layout in LAYOUTS:
            path = Path(folder) / f"{layout}.h5"
            write(path, layout, sentences)
            yield from _of_file(path, layout, sentences)


def write(path: Path, layout: str, sentences: int) -> None:
    """A feature file of the top layer in float16, of sentences of 1 to twice the mean number of words."""
    lengths = np.random.default_rng(0).integers(1, 2 * WORDS, sentences).tolist()
    states = np.random.default_rng(1).standard_normal((2 * WORDS, WIDTH)).astype(np.float16)
    shape = FeatureShape(layers=1, width=WIDTH, dtype="float16", single=True, words=sum(lengths))
    with write_features(path, {}, shape=shape, layout=layout, sentence_map=False) as writer:
        for length in lengths:
            writer.add(Sentence(("w",) * length), states[:length])


def _of_file(path: Path, layout: str, sentences: int) -> Iterator[tuple[str, str]]:
    in_order = range(sentences)
    at_random = np.random.default_rng(2).permutation(sentences).tolist()
    with FeatureFile(path) as file:
        file.check()  # from here on it is in the page cache
    with FeatureFile(path) as file:
        first, again = _view_seconds(file, at_random), _view_seconds(file, at_random)
    yield (
        f"{layout}, finding a sentence",
        f"{1e6 * first / sentences:.1f} µs the first time, {1e6 * again / sentences:.1f} µs afterwards",
    )
    for name, order in (("in order", in_order), ("at random", at_random)):
        for workers in (1, WORKERS):
            seconds = _read_seconds(path, order, workers)
            size = path.stat().st_size
            yield (
                f"{layout}, reading {name}, {counted(workers, 'process', 'processes')}",
                f"{sentences / seconds:,.0f} sentences/s, {human_bytes(size / seconds)}/s",
            )


def _view_seconds(file: FeatureFile, order: Sequence[int]) -> float:
    started = time.perf_counter()
    for index in order:
        file.view(index)
    return time.perf_counter() - started


def _read_seconds(path: Path, order: Sequence[int], workers: int) -> float:
    """Seconds that reading and checking all sentences takes, each process its share of them."""
    if workers == 1:
        with FeatureFile(path) as file:
            started = time.perf_counter()
            _read(file, order)
            return time.perf_counter() - started
    with FeatureFile(path) as file, multiprocessing.get_context("fork").Pool(workers, _keep, (file,)) as pool:
        pool.map(_read_share, [order[:1]] * workers, chunksize=1)  # all have started
        started = time.perf_counter()
        pool.map(_read_share, [order[worker::workers] for worker in range(workers)], chunksize=1)
        return time.perf_counter() - started


_kept: list[FeatureFile] = []
"""In a worker, the file that it reads."""


def _keep(file: FeatureFile) -> None:
    _kept.append(file)


def _read_share(order: Sequence[int]) -> None:
    _read(_kept[0], order)


def _read(file: FeatureFile, order: Sequence[int]) -> None:
    for index in order:
        file[index]
