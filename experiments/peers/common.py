"""What the scripts of peers share: text in random blocks, a learning rate by the clock,
and the feature file.
"""

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmoc.files.writing import atomic_path
from elmoc.process import progress_bar
from elmoc.settings import parse_duration

BLOCK_BYTES = 1 << 16  # lines that stand together: about 12,000 words of one file
MIXED_BLOCKS = 32  # blocks whose sentences are shuffled together
WARM_UP = 0.05  # share of the time in which the learning rate rises
ENDLESS = 10**9  # steps of a trainer that the clock ends


def arguments_of(what: str) -> argparse.Namespace:
    """The command line of a peer: TEXT… OUT --max-time TIME [--sentences FILE] [--seed
    N] [--threads N].
    """
    import torch

    parser = argparse.ArgumentParser(
        description=f"Train {what} for a given time, and write its features."
    )
    parser.add_argument(
        "texts",
        nargs="+",
        type=Path,
        metavar="TEXT",
        help="one tokenised sentence a line",
    )
    parser.add_argument(
        "out",
        type=Path,
        metavar="OUT",
        help="folder of the model; a finished one is not trained again",
    )
    parser.add_argument(
        "--max-time",
        required=True,
        metavar="TIME",
        help="of training, e.g. 100m, 2h, 90s",
    )
    parser.add_argument(
        "--sentences",
        type=Path,
        metavar="FILE",
        help="sentences whose features go to OUT/features.h5",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--threads", type=int, default=2, help="threads that compute (default: 2)"
    )
    arguments = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    random.seed(arguments.seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    return arguments


class TextBlocks:
    """Files of tokenised sentences, read in blocks whose order is random, again and
    again.

    A block has the lines that begin in its part of a file, so that any part of a pass
    is a sample of all files by size.
    """

    def __init__(self, paths: Sequence[Path], *, seed: int) -> None:
        self._seed = seed
        self._blocks = [
            (path, start)
            for path in paths
            for start in range(0, path.stat().st_size, BLOCK_BYTES)
        ]

    def __len__(self) -> int:
        """Blocks of a pass."""
        return len(self._blocks)

    def blocks(self) -> Iterator[list[list[str]]]:
        """The sentences of every block, of pass after pass, without end."""
        for number in count():
            order = random.Random(f"{self._seed} {number}").sample(
                self._blocks, len(self)
            )
            for path, start in order:
                yield self._read(path, start)

    def mixed(self) -> Iterator[list[list[str]]]:
        """The sentences of some blocks at a time, shuffled."""
        blocks = self.blocks()
        for number in count():
            sentences = [
                words
                for block in islice(blocks, min(MIXED_BLOCKS, len(self)))
                for words in block
            ]
            random.Random(f"{self._seed} {number}").shuffle(sentences)
            yield sentences

    def _read(self, path: Path, start: int) -> list[list[str]]:
        lines = []
        with open(path, "rb") as file:
            if start:
                file.seek(start - 1)
                file.readline()  # the line that begins in the block before
            while file.tell() < start + BLOCK_BYTES and (line := file.readline()):
                lines.append(line)
        return [words for line in lines if (words := line.decode().split())]


class Clock:
    """The time of a training, and its learning rate: a linear rise, then a linear fall
    to zero.
    """

    def __init__(self, max_time: str) -> None:
        self.limit = parse_duration(max_time)
        self.words = 0.0
        self._began: float | None = None
        self._bar = progress_bar(total=round(self.limit), unit=" s", desc="training")

    @property
    def seconds(self) -> float:
        """Since the first step."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.seconds >= self.limit

    @property
    def factor(self) -> float:
        """The learning rate now, by its peak."""
        share = min(1.0, self.seconds / self.limit)
        return share / WARM_UP if share < WARM_UP else (1 - share) / (1 - WARM_UP)

    def start(self) -> None:
        """Begin to count, where that has not begun."""
        self._began = self._began or time.monotonic()

    def step(self, words: float, loss: float) -> None:
        """A step is done that read so many words, at this loss."""
        self.words += words
        self._bar.set_postfix_str(
            f"{self.words:,.0f} words, loss {loss:.3f}", refresh=False
        )
        self._bar.update(round(min(self.seconds, self.limit)) - self._bar.n)


def write_features(
    path: Path,
    sentences: Path,
    encode: Callable[[list[str]], np.ndarray],
    attributes: dict[str, Any],
) -> None:
    """Write the layer states of every line in the layout of `allennlp elmo`.

    `encode` gives float32 [layers, n, width] for a sentence of n ≥ 1 words.
    """
    lines = sentences.read_text(encoding="utf-8").splitlines()
    text = h5py.string_dtype(encoding="utf-8")
    with atomic_path(path) as partial, h5py.File(partial, "w") as file:
        file.attrs.update(attributes)
        with progress_bar(total=len(lines), unit=" sentences", desc="features") as bar:
            for index, line in enumerate(lines):
                file.create_dataset(str(index), data=encode(line.split()))
                bar.update()
        places = json.dumps(
            {line.strip(): str(index) for index, line in enumerate(lines)}
        )
        file.create_dataset("sentence_to_index", data=[places], dtype=text)
