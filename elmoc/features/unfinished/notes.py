"""Notes of a layout: what it has to remember of each sentence until the end, on disk, so that memory does not grow."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import xxhash

from elmoc.errors import InputError
from elmoc.features.unfinished import ANEW
from elmoc.settings import setting

_BLOCK_BYTES = 1 << 18


@dataclass(frozen=True, kw_only=True)
class NotesKept:
    """A part of notes that is recorded: how many bytes from the first, and a checksum of them."""

    bytes: int = setting(0, least=0)
    checksum: str = ""


class Notes:
    """A file of JSON values, one a line, to which is added at its end."""

    def __init__(self, path: Path, kept: "NotesKept | None" = None) -> None:
        """With `kept`, it begins with that part of what is there; one that is damaged is an `InputError`."""
        self._path = path
        self._buffer = bytearray()
        self._digest = xxhash.xxh3_64()
        self._bytes = kept.bytes if kept is not None else 0
        if not self._bytes:
            path.unlink(missing_ok=True)
        elif not path.is_file() or path.stat().st_size < self._bytes:
            raise InputError(f"{path} is missing or truncated: {ANEW}")
        else:
            os.truncate(path, self._bytes)
            with open(path, "rb", buffering=0) as file:
                while block := file.read(_BLOCK_BYTES):
                    self._digest.update(block)
            if kept != self.kept():
                raise InputError(f"{path} is damaged: {ANEW}")

    def add(self, value: Any) -> None:
        """Write down the next value."""
        line = msgspec.json.encode(value) + b"\n"
        self._bytes += len(line)
        self._digest.update(line)
        self._buffer += line
        if len(self._buffer) >= _BLOCK_BYTES:
            self.flush()

    def kept(self) -> "NotesKept":
        """What there is up to now."""
        return NotesKept(bytes=self._bytes, checksum=self._digest.hexdigest())

    def flush(self, *, to_disk: bool = False) -> None:
        """Hand everything to the system; with `to_disk`, wait until it is there."""
        if not self._buffer and not (to_disk and self._bytes):
            return
        with open(self._path, "ab") as file:
            file.write(self._buffer)
            if to_disk:
                file.flush()
                os.fsync(file.fileno())
        self._buffer.clear()

    def __iter__(self) -> Iterator[Any]:
        """The values, from the first."""
        self.flush()
        if not self._bytes:
            return
        with open(self._path, "rb") as file:
            yield from map(msgspec.json.decode, file)
