"""What the scripts of peers share: text in random blocks, a learning rate by the clock,
and the feature file.
"""

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Annotated, Any

import h5py
import numpy as np

from elmoc.command_line import run_main
from elmoc.files.writing import atomic_path
from elmoc.process import progress_bar
from elmoc.settings import Meta, parse_duration

# Lines that stand together: about 12,000 words of one file.
BLOCK_BYTES = 1 << 16
# Blocks whose sentences are shuffled together.
MIXED_BLOCKS = 32
# Share of the time in which the learning rate rises.
WARM_UP = 0.05
# Sentences whose features are in memory at a time: batches of like length are made of
# them.
TOGETHER = 2048
# Batches whose examples are sorted by length together.
SORTED_BATCHES = 50
# Steps of a trainer that the clock ends.
ENDLESS = 10**9


@dataclass(frozen=True)
class Options:
    """What a peer is trained on, and how long."""

    texts: Annotated[
        tuple[Path, ...],
        Meta(description="one tokenised sentence a line", extra={"metavar": "TEXT"}),
    ]
    out: Annotated[
        Path,
        Meta(description="folder of the model; a finished one is not trained again"),
    ]
    max_time: Annotated[
        str,
        Meta(
            description="of training, e.g. 100m, 2h, 90s",
            extra={"option": "--max-time", "metavar": "TIME"},
        ),
    ]
    sentences: Annotated[
        Path | None,
        Meta(
            description="sentences whose features go to OUT/features.h5",
            extra={"metavar": "FILE"},
        ),
    ] = None
    seed: Annotated[int, Meta(description="of weights, text and dropout")] = 1
    threads: Annotated[int, Meta(ge=1, description="threads that compute")] = 2


def run_peer(name: str, what: str, run: Callable[[Options], None]) -> None:
    """The `main` of a peer."""

    def prepared(options: Options) -> None:
        import torch

        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        torch.set_num_threads(options.threads)
        torch.manual_seed(options.seed)
        random.seed(options.seed)
        options.out.mkdir(parents=True, exist_ok=True)
        run(options)

    prog = f"python -m experiments.peers.{name}"
    description = f"Train {what} for a given time, and write its features."
    sys.exit(run_main(Options, prepared, None, prog=prog, description=description))


class TextBlocks:
    """Files of tokenised sentences, read in blocks whose order is random, again and
    again.

    A block has the lines that begin in its part of a file, so that any part of a pass
    is a sample of all files by size.
    """

    def __init__(self, paths: Sequence[Path], *, seed: int) -> None:
        self._seed = seed
        self._blocks = []
        for path in paths:
            for start in range(0, path.stat().st_size, BLOCK_BYTES):
                self._blocks.append((path, start))

    def __len__(self) -> int:
        """Blocks of a pass."""
        return len(self._blocks)

    def blocks(self) -> Iterator[list[list[str]]]:
        """The sentences of every block, of pass after pass, without end."""
        for number in count():
            generator = random.Random(f"{self._seed} {number}")
            order = generator.sample(self._blocks, len(self))
            for path, start in order:
                yield self._read(path, start)

    def mixed(self) -> Iterator[list[list[str]]]:
        """The sentences of some blocks at a time, shuffled."""
        blocks = self.blocks()
        for number in count():
            sentences = []
            for block in islice(blocks, min(MIXED_BLOCKS, len(self))):
                sentences += block
            random.Random(f"{self._seed} {number}").shuffle(sentences)
            yield sentences

    def _read(self, path: Path, start: int) -> list[list[str]]:
        lines = []
        with open(path, "rb") as file:
            if start:
                file.seek(start - 1)
                # The line that begins in the block before.
                file.readline()
            while file.tell() < start + BLOCK_BYTES and (line := file.readline()):
                lines.append(line)
        return [words for line in lines if (words := line.decode().split())]


def batches(
    lengths: Sequence[int], size: int, generator: random.Random
) -> Iterator[list[int]]:
    """Places of examples of like length, in random order."""
    order = generator.sample(range(len(lengths)), len(lengths))
    made = []
    # Sorted in blocks, batches have little padding and still differ in every epoch.
    for start in range(0, len(order), size * SORTED_BATCHES):
        block = order[start : start + size * SORTED_BATCHES]
        block.sort(key=lengths.__getitem__)
        made += [block[row : row + size] for row in range(0, len(block), size)]
    generator.shuffle(made)
    yield from made


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
        told = f"{self.words:,.0f} words, loss {loss:.3f}"
        self._bar.set_postfix_str(told, refresh=False)
        self._bar.update(round(min(self.seconds, self.limit)) - self._bar.n)


def write_features(
    path: Path,
    sentences: Path,
    encode: Callable[[list[list[str]]], Sequence[np.ndarray]],
    attributes: dict[str, Any],
) -> None:
    """Write the layer states of every line in the layout of `allennlp elmo`.

    `encode` gives [layers, n, width] for each of some sentences of n ≥ 1 words.
    """
    lines = sentences.read_text(encoding="utf-8").splitlines()
    text = h5py.string_dtype(encoding="utf-8")
    with atomic_path(path) as partial, h5py.File(partial, "w") as file:
        file.attrs.update(attributes)
        with progress_bar(total=len(lines), unit=" sentences", desc="features") as bar:
            for start in range(0, len(lines), TOGETHER):
                block = lines[start : start + TOGETHER]
                states = encode([line.split() for line in block])
                for index, array in enumerate(states, start):
                    file.create_dataset(str(index), data=array)
                bar.update(len(block))
        places = {line.strip(): str(index) for index, line in enumerate(lines)}
        file.create_dataset("sentence_to_index", data=[json.dumps(places)], dtype=text)
