"""Changes of a file that must stay as it is for now: kept beside it, page by page, and put into their place later."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash

from elmoc.errors import InputError
from elmoc.features.unfinished import ANEW
from elmoc.settings import setting

PAGE = 1 << 12
_BLOCK_BYTES = 1 << 22


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The part of a file that must stay as it is: its first `size` bytes, but for those from `start` to `stop`."""

    size: int = setting(0, least=0)
    start: int = setting(0, least=0)
    stop: int = setting(0, least=0)

    def parts(self, start: int, stop: int) -> Iterator[tuple[int, int, bool]]:
        """The bytes from `start` to `stop` in parts: where each begins and ends, and whether it is kept."""
        ends = sorted({end for end in (self.start, self.stop, self.size, stop) if start < end <= stop})
        for end in ends:
            yield start, end, start < self.size and not self.start <= start < self.stop
            start = end


@dataclass(frozen=True, kw_only=True)
class Sealed:
    """What is recorded of changes that are complete.

    name: of their file.
    kept: the part of the file that they are of.
    pages: how many there are.
    checksum: of the file.
    """

    name: str
    kept: Kept
    pages: int = setting(least=0)
    checksum: str


class Changes:
    """Takes what is written to the kept part of a file. Of each page it has what the file has, with the changes."""

    def __init__(self, path: Path, original: int, kept: Kept) -> None:
        """`original` is the descriptor of the file."""
        self.path, self.kept = path, kept
        self._original = original
        self._file = open(path, "w+b", buffering=0)  # noqa: SIM115 - closed by `close`
        self._slots: dict[int, int] = {}

    def write(self, position: int, data: memoryview) -> None:
        """Write to a place that is kept."""
        while data:
            page, offset = divmod(position, PAGE)
            slot = self._slots.get(page)
            if slot is not None:
                piece = data[: PAGE - offset]
                _write(self._file.fileno(), piece, slot * PAGE + offset)
            elif not (count := self._new_pages(page, len(data) // PAGE if offset == 0 else 0)):
                piece = data[: PAGE - offset]
                before = bytearray(os.pread(self._original, PAGE, page * PAGE).ljust(PAGE, b"\0"))
                before[offset : offset + len(piece)] = piece
                self._add(page, 1, before)
            else:
                piece = data[: count * PAGE]
                self._add(page, count, piece)
            position, data = position + len(piece), data[len(piece) :]

    def _new_pages(self, page: int, most: int) -> int:
        """How many pages from this one on have no changes yet."""
        count = 0
        while count < most and page + count not in self._slots:
            count += 1
        return count

    def _add(self, page: int, count: int, content: bytearray | memoryview) -> None:
        first = len(self._slots)
        _write(self._file.fileno(), content, first * PAGE)
        self._slots.update((page + each, first + each) for each in range(count))

    def patch(self, position: int, data: memoryview) -> None:
        """Put the changes into what has been read of the file at a place."""
        end = position + len(data)
        for page in range(position // PAGE, -(-end // PAGE)) if self._slots else ():
            if (slot := self._slots.get(page)) is not None:
                for start, stop, kept in self.kept.parts(max(position, page * PAGE), min(end, (page + 1) * PAGE)):
                    if kept:
                        at = slot * PAGE + start - page * PAGE
                        data[start - position : stop - position] = os.pread(self._file.fileno(), stop - start, at)

    def seal(self) -> Sealed:
        """Hand the changes to the disk, with the numbers of their pages behind them; nothing more can be written."""
        pages = np.fromiter(self._slots, dtype="<i8", count=len(self._slots))
        _write(self._file.fileno(), pages.tobytes(), len(pages) * PAGE)
        os.fsync(self._file.fileno())
        return Sealed(name=self.path.name, kept=self.kept, pages=len(pages), checksum=_checksum(self._file.fileno()))

    def apply(self) -> None:
        """Put the changes into their places in the file."""
        _apply(self._file.fileno(), self._original, self._slots, self.kept)

    def close(self) -> None:
        """Close their file."""
        self._file.close()


def apply_sealed(folder: Path, sealed: Sealed, original: int) -> None:
    """Put changes that a killed process has sealed into their places; they may be there already.

    Raises `InputError` when they are damaged.
    """
    path = folder / sealed.name
    size = sealed.pages * (PAGE + 8)
    if path.parent != folder or not path.is_file() or path.stat().st_size != size:
        raise InputError(f"{path} is missing or truncated: {ANEW}")
    with open(path, "rb", buffering=0) as file:
        if _checksum(file.fileno()) != sealed.checksum:
            raise InputError(f"{path} is damaged: {ANEW}")
        numbers = np.frombuffer(os.pread(file.fileno(), sealed.pages * 8, sealed.pages * PAGE), dtype="<i8")
        _apply(file.fileno(), original, {int(page): slot for slot, page in enumerate(numbers)}, sealed.kept)


def _apply(changes: int, original: int, slots: dict[int, int], kept: Kept) -> None:
    for page in sorted(slots):
        content = os.pread(changes, PAGE, slots[page] * PAGE)
        first = page * PAGE
        for start, stop, is_kept in kept.parts(first, first + PAGE):
            if is_kept:
                _write(original, content[start - first : stop - first], start)


def _write(descriptor: int, data: bytes | bytearray | memoryview, position: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, position)
        rest, position = rest[written:], position + written


def _checksum(descriptor: int) -> str:
    digest, position = xxhash.xxh3_64(), 0
    while block := os.pread(descriptor, _BLOCK_BYTES, position):
        digest.update(block)
        position += len(block)
    return digest.hexdigest()
