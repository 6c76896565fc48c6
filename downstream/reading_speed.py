"""How fast are features read from a file, by one process and by two at once?

python -m downstream.reading_speed FEATURES.h5

Each process opens the file by itself, as the probes of two runs do, and copies sentences in random order. Where the
file is in the system's page cache, both read the same memory.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import numpy as np

from elmoc.errors import InputError, run_command
from elmoc.feature_file import FeatureFile
from elmoc.files import human_bytes

SENTENCES = 20_000
"""So many sentences, evenly spread over the file, are read again and again."""


class Reader:
    """A process that reads a feature file whenever it is told to."""

    def __init__(self, path: Path, seed: int) -> None:
        processes = multiprocessing.get_context("spawn")
        self._pipe, theirs = processes.Pipe()
        self._process = processes.Process(target=_serve, args=(path, seed, theirs), daemon=True)
        self._process.start()

    def begin(self, seconds: float) -> None:
        """Read for so long."""
        self._pipe.send(seconds)

    def speed(self) -> tuple[float, float]:
        """Sentences and bytes a second of what `begin` began."""
        sentences, size = self._pipe.recv()
        return sentences, size

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join()


def _serve(path: Path, seed: int, pipe: Connection) -> None:
    with FeatureFile(path) as file:
        views = [file.view(index) for index in range(0, len(file), max(1, len(file) // SENTENCES))]
    place = np.empty(max(view.size for view in views), dtype=views[0].dtype)
    generator = np.random.default_rng(seed)
    while True:
        try:
            seconds = pipe.recv()
        except EOFError:
            return
        sentences = size = 0
        begin = time.perf_counter()
        while time.perf_counter() < begin + seconds:
            for row in generator.integers(len(views), size=64):
                place[: views[row].size] = views[row].reshape(-1)
                size += views[row].nbytes
            sentences += 64
        passed = time.perf_counter() - begin
        pipe.send((sentences / passed, size / passed))


def reading_speed(path: Path, *, seconds: float, rounds: int) -> None:
    """Print how fast one process reads, how fast each of two does, and the ratio; in turn, the median of the rounds."""
    if rounds < 1 or seconds <= 0:
        raise InputError("--rounds must be at least 1 and --seconds above 0")
    with FeatureFile(path) as file:
        what = f"{file.layers} layers of {file.width}, {file.dtype}"
        print(f"{path}: {len(file):,} sentences, {what}, {human_bytes(path.stat().st_size)}")
    alone, together = [], []
    with ExitStack() as stack:
        readers = []
        for seed in range(2):
            readers.append(Reader(path, seed))
            stack.callback(readers[-1].close)
        for chosen in (readers[:1], readers):  # until now nothing was read
            _speeds(chosen, seconds)
        for _ in range(rounds):
            alone += _speeds(readers[:1], seconds)
            together.append(np.mean(_speeds(readers, seconds), axis=0))
    (one, one_bytes), (two, two_bytes) = (map(median, zip(*speeds, strict=True)) for speeds in (alone, together))
    print(f"{'':20} {'sentences/s':>12} {'per second':>12} {'of one alone':>13}")
    print(f"{'one process':20} {one:12,.0f} {human_bytes(one_bytes):>12}")
    print(f"{'each of two at once':20} {two:12,.0f} {human_bytes(two_bytes):>12} {two / one:13.2f}")


def _speeds(readers: Sequence[Reader], seconds: float) -> list[tuple[float, float]]:
    for reader in readers:
        reader.begin(seconds)
    return [reader.speed() for reader in readers]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m downstream.reading_speed",
        description="How fast is a feature file read by one process, and by two at once?",
    )
    parser.add_argument("features", type=Path, help="feature file (`elmoc dump-features`)")
    parser.add_argument("--seconds", type=float, default=2.0, help="the length of a measurement (default: 2)")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each kind (default: 5)")
    options = parser.parse_args(arguments)
    return run_command(lambda: reading_speed(options.features, seconds=options.seconds, rounds=options.rounds))


if __name__ == "__main__":
    sys.exit(main())
