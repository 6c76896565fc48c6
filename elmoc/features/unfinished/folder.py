"""Folder of an unfinished feature file: what is in it, how far it goes, and how it is gone on with."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from elmoc.errors import InputError, shortened
from elmoc.features.unfinished import ANEW
from elmoc.features.unfinished.changes import Changes, Kept, Sealed, apply_sealed
from elmoc.features.unfinished.disk_file import DiskFile
from elmoc.features.unfinished.notes import NotesKept
from elmoc.files.checksums import fingerprint
from elmoc.files.locks import unfinished_path
from elmoc.files.records import as_json, check_version, convert, read_json, write_json
from elmoc.settings import setting

FORMAT, VERSION = "elmoc-unfinished-features", 1
_OF_OLDER_VERSIONS = {"source"}
"""Written by them of how a file was begun, always empty."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far an unfinished feature file goes.

    begun: what the file is written from and how, by name.
    sentences: in the file.
    memory: what the layout has to know to go on; None before the first sentence.
    kept: the part of the file that is complete.
    notes: the part of the notes that is complete.
    changes: of an earlier such part, which may not be in their places yet.
    finished: whether nothing is to be added.
    """

    begun: dict[str, str]
    sentences: int = setting(0, least=0)
    memory: dict[str, int | str] | None = None
    kept: Kept = field(default_factory=Kept)
    notes: NotesKept = field(default_factory=NotesKept)
    changes: Sealed | None = None
    finished: bool = False


class UnfinishedFolder:
    """The folder in which a feature file grows; nobody else may write there."""

    def __init__(self, target: Path) -> None:
        """`target` is the name that the file will have."""
        self.path = unfinished_path(target)
        self.file = self.path / "features.h5"
        self.notes = self.path / "notes.jsonl"
        self._record = self.path / "progress.json"
        self._changes = (self.path / "changes.0", self.path / "changes.1")
        self.target = target

    @property
    def can_go_on(self) -> bool:
        """Whether there is something that can be gone on with."""
        return self._record.exists()

    def refuse(self) -> None:
        """Raise an `InputError` where there is something that can be gone on with: nobody loses it unasked."""
        if self.can_go_on:
            raise InputError(
                f"{self.target} was begun by a command that did not end: give that command --resume (in Python "
                f"resume=True) to go on, or remove {self.path} to begin anew"
            )

    def remove(self) -> None:
        """Remove it with what is in it."""
        if self.path.exists():
            shutil.rmtree(self.path)

    @contextmanager
    def opened(self, progress: Progress | None) -> Iterator[None]:
        """Make it anew, or bring the file to where it was when `progress` was recorded.

        When the block ends, it is removed unless it can be gone on with.
        """
        try:
            if progress is None:
                self.remove()
                self.path.mkdir()
            else:
                self._restore(progress)
            yield
        finally:
            if not self.can_go_on:
                self.remove()

    def progress(self, begun: Mapping[str, str]) -> Progress:
        """How far it goes; an `InputError` if it is damaged, or was begun otherwise."""
        info = read_json(self._record)
        check_version(self._record, info, format=FORMAT, version=VERSION)
        seal = info.pop("seal", None)
        if seal != _seal(info):
            raise InputError(f"{self._record} is damaged: {ANEW}")
        progress = convert(
            {name: value for name, value in info.items() if name not in ("format", "version")},
            Progress,
            where=str(self._record),
        )
        for name in sorted({*begun, *progress.begun} - _OF_OLDER_VERSIONS):
            then, now = (each.get(name, "nothing") for each in (progress.begun, begun))
            if then != now:
                raise InputError(
                    f"{self.target} was begun with {name} {shortened(then)}, and cannot be gone on with {name} "
                    f"{shortened(now)}: give what was given before, or remove {self.path} to begin anew"
                )
        return progress

    def _restore(self, progress: Progress) -> None:
        if not self.file.is_file() or self.file.stat().st_size < progress.kept.size:
            raise InputError(f"{self.file} is missing or truncated: {ANEW}")
        os.truncate(self.file, progress.kept.size)
        if progress.changes is not None:
            with open(self.file, "r+b", buffering=0) as file:
                apply_sealed(self.path, progress.changes, file.fileno())

    def keep(self, disk: DiskFile, progress: Progress) -> None:
        """From here on, let `disk` leave as it is what `progress` counts."""
        before = progress.changes.name if progress.changes is not None else ""
        path = next(path for path in self._changes if path.name != before)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        disk.changes = Changes(path, disk.fileno(), progress.kept)

    def record(self, disk: DiskFile, progress: Progress) -> None:
        """Record how far the file goes, and keep that; its size and changes are put in here.

        HDF5 has handed everything to `disk`, and the notes are on the disk.
        """
        os.fsync(disk.fileno())
        changes = disk.changes
        progress = replace(
            progress,
            kept=replace(progress.kept, size=os.fstat(disk.fileno()).st_size),
            changes=changes.seal() if changes is not None else None,
        )
        info = as_json(progress, format=FORMAT, version=VERSION)
        write_json(self._record, {**info, "seal": _seal(info)})
        if changes is not None:
            changes.apply()
            changes.close()
        self.keep(disk, progress)

    def publish(self, disk: DiskFile) -> None:
        """Give the file its name, and remove everything else."""
        os.fsync(disk.fileno())
        os.replace(self.file, self.target)
        self.remove()


def _seal(info: dict[str, Any]) -> str:
    return fingerprint(json.dumps(info, sort_keys=True).encode())
