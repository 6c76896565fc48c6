"""Opening of word vectors: how long a fastText file takes to open, in how much memory, and how fast words are found.

The file is synthetic, of the size of the published ones, and the library is measured beside, each in a process of its
own, whose memory is free again afterwards.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmoc.files.writing import human_bytes, require_space
from elmoc.process import resident_bytes
from elmoc.word_vectors.fasttext.file import COUNT_AND_TYPE

DIM = 300
_LETTERS, _DISTINCT, _STEP = 26, 26**6, 48271
_BLOCK_BYTES = 1 << 24


@dataclass(frozen=True)
class Size:
    """Words of the dictionary, as many buckets, and words that are looked up at once."""

    words: int
    sample: int


QUICK, PUBLISHED = Size(words=100_000, sample=2_000), Size(words=2_000_000, sample=20_000)


def rows(quick: bool) -> Iterator[tuple[str, str]]:
    """Yield (what, figure) pairs: of the published size, which takes 7.2 GB of disk and memory, or of a small one."""
    import torch  # loaded here alone: what is measured is the memory of processes without it

    from elmoc.devices import free_memory

    size = QUICK if quick else PUBLISHED
    with tempfile.TemporaryDirectory(prefix="elmoc-opening-") as folder:
        path = Path(folder) / "vectors.bin"
        require_space(path, 3 * 4 * DIM * size.words)
        write_fasttext_file(path, words=size.words, buckets=size.words)
        yield "file", f"{human_bytes(path.stat().st_size)}: {size.words:,} words and buckets, n-grams of 3 to 6"
        _run("measure_elmoc", path, 1)  # compiles what is not compiled yet
        Path(f"{path}.index").unlink(missing_ok=True)  # small dictionaries have none
        for opening in ("first", "later"):
            figures = _run("measure_elmoc", path, size.sample)
            yield f"elmoc, {opening} opening", _opening(figures)
        yield from _look_ups("elmoc", figures)
        yield "elmoc, how", figures["how"]
        needed, free = path.stat().st_size, free_memory(torch.device("cpu"))
        if free < 1.25 * needed:
            yield "fastText", f"not measured: it takes {human_bytes(needed)} of memory, {human_bytes(free)} are free"
            return
        figures = _run("measure_library", path, size.sample)
        yield "fastText, opening", _opening(figures)
        yield from _look_ups("fastText", figures)


def _opening(figures: dict) -> str:
    resident, peak = (human_bytes(figures[name]) for name in ("resident", "peak"))
    return f"{figures['seconds']:.2f} s, {resident} resident, at most {peak}"


def _look_ups(who: str, figures: dict) -> Iterator[tuple[str, str]]:
    for kind in ("known", "unseen"):
        yield f"{who}, {kind} words", f"{figures[kind]:,.0f} a second of one core"


def measure_elmoc(path: Path, sample: int) -> dict:
    """Seconds and bytes of memory of an opening here, and words looked up a second."""
    from elmoc.word_vectors.fasttext.vectors import FastTextVectors

    return _measure(lambda: FastTextVectors(path), lambda vectors, words: vectors.lookup(words), sample)


def measure_library(path: Path, sample: int) -> dict:
    """As `measure_elmoc`, by the library, one word after another."""
    import fasttext

    def look_up(model, words: list[str]) -> np.ndarray:
        return np.stack([model.get_word_vector(word) for word in words])

    return _measure(lambda: fasttext.load_model(str(path)), look_up, sample)


def _measure(open_vectors: Callable, look_up: Callable, sample: int) -> dict:
    start = time.perf_counter()
    vectors = open_vectors()
    figures = {"seconds": time.perf_counter() - start, **_memory(), "how": getattr(vectors, "description", "")}
    for kind, first in (("known", 0), ("unseen", _DISTINCT // 2)):
        words = [word.decode() for word in made_up_words(first, sample)]
        look_up(vectors, words)  # maps the pages: what is measured is not the disk
        seconds = []
        for _ in range(5):
            start = time.process_time()  # other processes may share the core
            look_up(vectors, words)
            seconds.append(time.process_time() - start)
        figures[kind] = sample / min(seconds)
    return figures


def _run(function: str, path: Path, sample: int) -> dict:
    code = f"import json, sys; from elmoc.benchmark.opening import {function} as measure; "
    code += "print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))"
    command = [sys.executable, "-c", code, str(path), str(sample)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)


def _memory() -> dict[str, int]:
    """Bytes that are resident now, and that were at most."""
    return {"resident": resident_bytes("VmRSS"), "peak": resident_bytes("VmHWM")}


def made_up_words(first: int, count: int) -> list[bytes]:
    """Distinct words of 6 to 10 letters; those of other numbers are others."""
    numbers = np.arange(first, first + count, dtype=np.int64) * _STEP % _DISTINCT  # a permutation: it has no 2 or 13
    more = np.random.default_rng(first).integers(_LETTERS, size=(count, 4))
    digits = numbers[:, None] // _LETTERS ** np.arange(6) % _LETTERS
    letters = (np.concatenate((digits, more), axis=1) + ord("a")).astype(np.uint8).tobytes()
    return [letters[10 * row : 10 * row + 6 + row % 5] for row in range(count)]


def write_fasttext_file(path: Path, *, words: int, buckets: int) -> None:
    """Write a fastText file of made-up words; its rows are random, and the rest, which is not read, a hole."""
    entry = np.zeros(1, COUNT_AND_TYPE)
    entry["count"] = 5
    behind = b"\0" + entry.tobytes()
    size = 4 * DIM * (words + buckets)
    block = np.random.default_rng(0).standard_normal(_BLOCK_BYTES // 4, dtype=np.float32).tobytes()
    with open(path, "wb") as file:
        file.write(struct.pack("<2i12id", 793712314, 12, DIM, 5, 5, 5, 5, 1, 3, 2, buckets, 3, 6, 100, 1e-4))
        file.write(struct.pack("<3i2q", words, words, 0, 5 * words, -1))
        file.write(behind.join(made_up_words(0, words)) + behind)
        file.write(struct.pack("<B2q", 0, words + buckets, DIM))
        for start in range(0, size, _BLOCK_BYTES):
            file.write(block[: size - start])
        file.write(struct.pack("<B2q", 0, words, DIM))
        file.truncate(file.tell() + 4 * DIM * words)
