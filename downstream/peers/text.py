"""Text: sentences of several files in blocks of random order, so that any part of a pass sees every kind of text."""

import random
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import IO

from elmoc.errors import InputError
from elmoc.files.text import MAX_LINE_BYTES, open_binary
from elmoc.files.writing import atomic_path

BLOCK_BYTES = 1 << 16
"""Lines that stand together: about 12,000 words, of one file."""
MIXED_BLOCKS = 32
"""Blocks whose sentences are shuffled together."""


class TextBlocks:
    """Files of tokenised sentences, one a line, read in blocks whose order is random, again and again.

    A block has the lines that begin in its part of a file. So a pass over a part of the blocks is a sample of all
    files by their sizes, and where a reader stopped is one number. Raises `InputError` for files that cannot be read.

    Args:
        paths: plain text in UTF-8; words are split on white space, lines without words left out.
        seed: of the order.
    """

    def __init__(self, paths: Sequence[Path], *, seed: int) -> None:
        self._seed = seed
        self._blocks: list[tuple[Path, int]] = []
        for path in paths:
            if path.suffix == ".gz":
                raise InputError(f"{path} is compressed, and blocks of it are read in random order: unpack it first")
            with open_binary(path) as file:
                size = file.seek(0, 2)
            self._blocks += [(path, start) for start in range(0, size, BLOCK_BYTES)]
        if not any(self._read(*block) for block in self._blocks):
            raise InputError(f"{', '.join(map(str, paths))}: no words: give text with a sentence on each line")

    def __len__(self) -> int:
        """Blocks of a pass."""
        return len(self._blocks)

    def blocks(self, first: int = 0) -> Iterator[tuple[int, list[list[str]]]]:
        """Number and sentences of every block from `first`, of pass after pass, without end."""
        order: list[tuple[Path, int]] = []
        for number in count(first):
            of_pass, index = divmod(number, len(self))
            if not order or index == 0:
                order = random.Random(f"{self._seed} {of_pass}").sample(self._blocks, len(self))
            yield number, self._read(*order[index])

    def mixed(self, first: int = 0) -> Iterator[tuple[int, list[list[str]]]]:
        """Some blocks at a time, their sentences shuffled, with the number of the block that is read next."""
        several = min(MIXED_BLOCKS, len(self))
        sentences: list[list[str]] = []
        for number, block in self.blocks(first):
            sentences += block
            if (number + 1 - first) % several == 0:
                random.Random(f"{self._seed} {number}").shuffle(sentences)
                yield number + 1, sentences
                sentences = []

    def write_sample(self, path: Path, words: int, *, first: int = 0) -> tuple[int, int]:
        """Write whole blocks to a file until it has so many words, or the pass ends.

        Returns the number of the block that is read next, and the words that were written.
        """
        written, read = 0, 0
        with atomic_path(path) as partial, open(partial, "w", encoding="utf-8", newline="\n") as file:
            for _, sentences in islice(self.blocks(first), len(self) - first % len(self)):
                file.writelines(" ".join(sentence) + "\n" for sentence in sentences)
                written, read = written + sum(map(len, sentences)), read + 1
                if written >= words:
                    break
        return first + read, written

    def _read(self, path: Path, start: int) -> list[list[str]]:
        """The sentences of the block of a file that starts at a byte."""
        sentences = []
        with open_binary(path) as file:
            if start:
                file.seek(start - 1)
                _read_line(file, path)  # the line that begins in the block before
            while file.tell() < start + BLOCK_BYTES and (line := _read_line(file, path)):
                sentences.append(line)
        try:
            return [words for line in sentences if (words := line.decode("utf-8-sig").split())]
        except UnicodeDecodeError:
            raise InputError(
                f"{path} has a line that is not valid UTF-8 behind byte {start:,}: convert the file (for instance with "
                "iconv)"
            ) from None


def _read_line(file: IO[bytes], path: Path) -> bytes:
    line = file.readline(MAX_LINE_BYTES + 1)
    if len(line) > MAX_LINE_BYTES:
        raise InputError(f"{path} has a line of more than {MAX_LINE_BYTES >> 20} MiB: break it into several lines")
    return line
