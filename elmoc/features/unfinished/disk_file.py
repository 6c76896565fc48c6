"""Disk file: what HDF5 writes to, on a disk that may be full, with a part that must stay as it is for now."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elmoc.features.unfinished.changes import Changes


class DiskFile(io.FileIO):
    """The file that HDF5 writes to. HDF5 crashes the process when a write fails (a full disk), so none ever does.

    The first exception is kept for `raise_error`, an interrupt too, and what would be written after it is thrown away.
    With `changes`, what they keep of the file is not written to, but they are.
    """

    changes: Changes | None = None

    def __init__(self, path: Path, mode: str = "w+", *, shown: Path | None = None) -> None:
        """`shown` is what errors call the file."""
        super().__init__(path, mode)
        self.error: BaseException | None = None
        self._shown = shown or path

    def raise_error(self) -> None:
        """Raise what went wrong in a write, if anything did."""
        if isinstance(self.error, OSError):
            self.error.filename = str(self._shown)
        if self.error is not None:
            raise self.error

    def write(self, data: Any) -> int:
        """Write all of `data`."""
        view = memoryview(data).cast("B")
        with self._kept():
            if self.error is None and self.changes is not None:
                self._write_in_parts(self.changes, view)
            elif self.error is None:
                self._write_through(view)
        return len(view)

    def _write_in_parts(self, changes: Changes, data: memoryview) -> None:
        position = self.tell()
        for start, stop, is_kept in changes.kept.parts(position, position + len(data)):
            part = data[start - position : stop - position]
            if is_kept:
                changes.write(start, part)
            else:
                self.seek(start)
                self._write_through(part)
        self.seek(position + len(data))

    def _write_through(self, rest: memoryview) -> None:
        while rest:
            rest = rest[super().write(rest) :]

    def readinto(self, buffer: Any) -> int:
        """Read what was written last."""
        position = self.tell()
        count = super().readinto(buffer) or 0
        if self.changes is not None:
            with self._kept():
                self.changes.patch(position, memoryview(buffer).cast("B")[:count])
        return count

    def truncate(self, size: int | None = None) -> int:
        """Set the size of the file, but to no less than what is kept of it."""
        with self._kept():
            if self.error is None:
                least = self.changes.kept.size if self.changes is not None else 0
                super().truncate(size if size is None else max(size, least))
        return size or 0

    def close(self) -> None:
        """Close the file, and that of the changes."""
        if self.changes is not None:
            self.changes.close()
        super().close()

    @contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.error = self.error or error
