"""Notes of a layout: what it has to remember of each sentence until the end, on disk, so that memory does not grow."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from elmoc.errors import InputError
from elmoc.features.unfinished import ANEW

_BLOCK_BYTES = 1 << 18


class Notes:
    """A file of JSON values, one a line, to which is added at its end.

    It begins with the first `kept` bytes of what is there.
    """

    def __init__(self, path: Path, *, kept: int = 0) -> None:
        self._path = path
        self._buffer = bytearray()
        self.bytes = kept
        if not kept:
            path.unlink(missing_ok=True)
        elif not path.is_file() or path.stat().st_size < kept:
            raise InputError(f"{path} is truncated: {ANEW}")
        else:
            os.truncate(path, kept)

    def add(self, value: Any) -> None:
        """Write down the next value."""
        line = msgspec.json.encode(value) + b"\n"
        self.bytes += len(line)
        self._buffer += line
        if len(self._buffer) >= _BLOCK_BYTES:
            self.flush()

    def flush(self, *, to_disk: bool = False) -> None:
        """Hand everything to the system; with `to_disk`, wait until it is there."""
        if not self._buffer and not (to_disk and self.bytes):
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
        if not self.bytes:
            return
        with open(self._path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield msgspec.json.decode(line)
                except ValueError:
                    raise InputError(f"{self._path}, line {number} is damaged: {ANEW}") from None
