"""Benchmark of writing: how fast feature files of each layout are written, beside the plain disk in the same run."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elmoc.features.layouts import LAYOUTS
from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.features.writer import write_features

WORDS, LAYERS, WIDTH = 25, 3, 1024
"""Of a sentence, at the paper's size: 307 KB in float32."""
BLOCK_BYTES = 1 << 23


def rows(quick: bool) -> Iterator[tuple[str, str]]:
    """What was measured, and the figure; `quick` is for tests, its figures mean little."""
    size = 1 << 25 if quick else 1 << 30
    datasets = 500 if quick else 100_000
    shape = FeatureShape(layers=LAYERS, width=WIDTH, dtype="float32", single=False)
    states = np.random.default_rng(0).standard_normal(shape.of(WORDS)).astype(np.float32)
    count = size // states.nbytes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "features.h5")
        plain = _mean_of(partial(_plain_write, path, count * states.nbytes))
        yield f"plain disk, blocks of 8 MB ({size / 1e6:,.0f} MB, until they are there)", plain.rate(size)
        for layout in LAYOUTS:
            taken = _mean_of(partial(_write, path, states, count, layout=layout))
            yield layout, f"{taken.rate(size)}, {plain.seconds / taken.seconds:.0%} of the plain disk"
        few = max(1, count // 32)
        for layout in ("allennlp", "flat"):
            taken = _write(path, states, few, layout=layout, compress=True)
            yield f"{layout}, compressed", taken.rate(few * states.nbytes)
        small = states[:, :1, :8].copy()
        for what, options in (("allennlp", {}), ("allennlp, sentences as keys", {"sentence_keys": True})):
            taken = _write(path, small, datasets, **options)
            each = f"{taken.seconds / datasets * 1e6:.0f} µs, {taken.processor / datasets * 1e6:.0f} of the processor"
            yield f"{what}, {datasets:,} datasets of 96 bytes, each", each


class Taken(NamedTuple):
    """What something has taken: seconds by the clock, and of the processor, which other programs do not change."""

    seconds: float
    processor: float

    def rate(self, size: int) -> str:
        """Of so many bytes."""
        return f"{size / self.seconds / 1e6:,.0f} MB/s ({size / self.processor / 1e6:,.0f} by the processor's time)"


@contextmanager
def _timed(taken: list[Taken]) -> Iterator[None]:
    start, processor = time.perf_counter(), time.process_time()
    yield
    taken.append(Taken(time.perf_counter() - start, time.process_time() - processor))


def _mean_of(measure: Callable[[], Taken]) -> Taken:
    """The mean of three measurements, of which the disk makes very different ones."""
    all_taken = [measure() for _ in range(3)]
    return Taken(*(sum(each) / 3 for each in zip(*all_taken, strict=True)))


def _plain_write(path: Path, size: int) -> Taken:
    block = np.random.default_rng(0).bytes(BLOCK_BYTES)
    taken: list[Taken] = []
    with _timed(taken), open(path, "wb", buffering=0) as file:
        while size > 0:
            size -= file.write(block[:size])
        os.fsync(file.fileno())
    path.unlink()
    return taken[0]


def _write(path: Path, states: np.ndarray, count: int, **options: Any) -> Taken:
    layers, words, width = states.shape
    shape = FeatureShape(layers=layers, width=width, dtype="float32", single=False, words=count * words)
    taken: list[Taken] = []
    with _timed(taken), write_features(path, {}, shape=shape, **options) as writer:
        for index in range(count):
            line = f"sentence {index} of the file has a text of some length like this one ."
            writer.add(Sentence(["w"] * words, line, str(index // 50)), states)
    path.unlink()
    return taken[0]
