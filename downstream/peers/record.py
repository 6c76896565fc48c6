"""Record of a peer: how was it trained, how far has it come, and are its files as they were written?"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from elmoc.errors import InputError
from elmoc.files.checksums import FileChecksum
from elmoc.files.locks import locked
from elmoc.files.records import read_record, write_record
from elmoc.files.writing import full_disk_is_clear
from elmoc.settings import setting

FORMAT, VERSION = "elmoc-peer", 1
RECORD, LOG, MODEL, WORK = "peer.json", "training.jsonl", "model", "work"
"""What is in the directory of a peer: its record, its log, the files of its model, and what training works with."""
ADVICE = "train the peer again"


@dataclass(frozen=True, kw_only=True)
class PeerRecord:
    """What `peer.json` holds.

    peer, settings: which peer, and its hyper-parameters.
    texts, seed, threads, max_seconds: what it was asked for.
    text_fingerprints: those of the texts; none in records of earlier versions.
    seconds, words: of training, and words read; what preparing the text and a vocabulary takes is not in it.
    position: of an unfinished training: the number of the block of text that comes next.
    checkpoint: of an unfinished training: the folder, in `work`, that is gone on from.
    model: the files of the model with their checksums; none before the training is finished.
    """

    peer: str
    settings: dict[str, Any]
    texts: list[str]
    text_fingerprints: list[str] = field(default_factory=list)
    seed: int = setting(least=0, below=2**32)
    threads: int = setting(least=1)
    max_seconds: float = setting(above=0)
    seconds: float = setting(0.0, least=0)
    words: int = setting(0, least=0)
    position: int = setting(0, least=0)
    checkpoint: Annotated[str, Meta(pattern=r"^[\w-]*$")] = ""
    model: dict[Annotated[str, Meta(pattern=r"^\w[\w.-]*$")], FileChecksum] = field(default_factory=dict)


class PeerDirectory:
    """The directory of a peer that is being trained, or is trained."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model, self.work, self.log = path / MODEL, path / WORK, path / LOG

    @property
    def exists(self) -> bool:
        """Whether there is a record in it."""
        return (self.path / RECORD).exists()

    def read(self) -> PeerRecord:
        """The record; raises `InputError`."""
        if not self.exists:
            raise InputError(f"{self.path} is not the directory of a peer (no {RECORD}): train one there first")
        return read_record(self.path / RECORD, PeerRecord, format=FORMAT, version=VERSION, advice=ADVICE)

    def trained(self, peer: str) -> PeerRecord:
        """The record of a finished training of this peer, whose files are as they were written; raises `InputError`."""
        record = self.read()
        if record.peer != peer:
            raise InputError(
                f"{self.path} is a {record.peer}, not a {peer}: dump it with downstream.peers.{record.peer}"
            )
        if not record.model:
            raise InputError(f"{self.path} is not trained to its end: go on with the same command and --resume")
        for name, checksum in record.model.items():
            checksum.check_whole(self.model / name, advice=f"it, or {self.path / RECORD}, has changed: {ADVICE}")
        return record

    def write(self, record: PeerRecord) -> None:
        """Write the record."""
        write_record(self.path / RECORD, record, format=FORMAT, version=VERSION)

    def finish(self, record: PeerRecord) -> PeerRecord:
        """Write the record of a training whose model is in its folder, and remove what training worked with."""
        files = {file.name: FileChecksum.of(file) for file in sorted(self.model.iterdir())}
        record = replace(record, model=files, checkpoint="")
        self.write(record)
        shutil.rmtree(self.work, ignore_errors=True)
        return record

    @contextmanager
    def opened(self, record: PeerRecord, *, resume: bool) -> Iterator[PeerRecord]:
        """Lock the directory for a training; gives the record to begin with, or to go on with.

        Raises `InputError` where there is something else, or what is there was asked for otherwise.
        """
        with locked(self.path), full_disk_is_clear(self.path):
            if resume and self.exists:
                yield self._left(record)
                return
            if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
                raise InputError(
                    f"{self.path} exists already: remove it, choose another name, or go on with its training by "
                    "--resume"
                )
            self.path.mkdir(exist_ok=True)
            self.write(record)
            yield record

    def _left(self, record: PeerRecord) -> PeerRecord:
        left = self.read()
        for name in ("peer", "settings", "texts", "seed", "max_seconds", "threads"):
            if getattr(left, name) != getattr(record, name):
                raise InputError(
                    f"{self.path} was begun with other values of {name.replace('_', ' ')} ({getattr(left, name)}): "
                    "give the same, or choose another directory"
                )
        if left.text_fingerprints not in ([], record.text_fingerprints):
            raise InputError(
                f"{self.path} was begun with other contents of {', '.join(record.texts)}: choose another directory"
            )
        return left
