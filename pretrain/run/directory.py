"""Run directory: the files of a run, written so that it can go on after it was killed.

    config.json             the resolved config
    start.json              `init_from`, the absolute path of the model that the run
                            started from, or the name of an installed one, if any
    metrics.jsonl           training and evaluation metrics, a JSON object a line
    checkpoints/UPDATE.pt   all that going on needs; the last few and the best are kept
    model/                  the exported model directory of the best evaluation so far

A checkpoint is a dictionary of tensors and plain values, as `torch.save` writes it: all
of `TrainState.to_dict`, and other fields of `Checkpoint`.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch

from elmoc.errors import InputError, reading
from elmoc.files.checksums import (
    check_archive,
    check_beside,
    checksum_line,
    checksum_path,
)
from elmoc.files.records import check_version, read_json, write_json
from elmoc.files.writing import atomic_path, locked, remove
from elmoc.model_directory import WEIGHTS
from elmoc.settings import convert
from elmoc.sharing.installed import installed_models
from pretrain.config import (
    RunConfig,
    config_from_dict,
    config_to_dict,
    differences,
    fixed_settings,
)
from pretrain.step import DirectionStep

CHECKPOINT = "elmoc-checkpoint"
CHECKPOINT_VERSION = 4
# The update of a checkpoint in the name of its file, which sorts as the number does.
UPDATE_DIGITS = 9


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that a run goes on from.

    path: of its file.
    state: all that the file holds, as `TrainState.to_dict` gives it and more.
    data: the fingerprints of corpus and vector tables, by setting.
    started_from: the training record of the model that the run started from, if any.
    metrics_bytes: the size of the part of `metrics.jsonl` that belongs to it.
    unlogged: the updates since the last line of `metrics.jsonl`, by direction.
    """

    path: Path
    state: dict[str, Any]
    data: dict[str, str]
    started_from: dict[str, Any] | None
    metrics_bytes: int
    unlogged: list[dict[str, DirectionStep]]


@dataclass(frozen=True)
class MetricsLine:
    """What every line of `metrics.jsonl` says, beside metrics by their names.

    kind: `train` or `evaluation`.
    update: the number of updates done.
    words: read so far in each direction.
    """

    kind: Literal["train", "evaluation"]
    update: int
    words: float


class RunDirectory:
    """The files of one run."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.start_record = self.path / "start.json"
        self.checkpoints = self.path / "checkpoints"
        self.model = self.path / "model"
        self.metrics = self.path / "metrics.jsonl"
        self.board = self.path / "tensorboard"

    def require_new(self) -> None:
        """Raise an `InputError` where the directory holds a run, what one has left, a
        model or a corpus.
        """
        others = (
            self.metrics,
            self.model,
            self.path / WEIGHTS,
            self.path / "corpus.json",
        )
        # A run that was killed while it started leaves an empty folder.
        for left in (self.config, *self.checkpoints.glob("*"), *others):
            if left.exists():
                raise InputError(
                    f"{left} is there already: go on with a run by --resume, or choose "
                    "another directory"
                )

    def start(self, config: RunConfig, init_from: str | None) -> None:
        """Make the directory of a new run, which starts from the model `init_from`, if
        any.
        """
        self.require_new()
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        write_json(self.start_record, {"init_from": init_from and _place_of(init_from)})
        # The last file: a run is there once its config is.
        write_json(self.config, config_to_dict(config))

    def started_from(self) -> str | None:
        """The model that the run started from, if any."""
        record = read_json(self.start_record)
        with reading(self.start_record):
            return convert(record, dict[str, str | None], where="")["init_from"]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training in this directory, and remove the files
        that a killed process was writing.
        """
        with locked(self.config):
            # No other process writes here now, so that such files are left over.
            unfinished = self.path.glob(".*.partial")
            locks = self.path.glob(".*.xxh3.*lock")
            # Locks of single checkpoints, too.
            for left in chain(unfinished, locks, self.checkpoints.glob(".*")):
                remove(left)
            yield

    def require_resumable(self, config: RunConfig, init_from: str | None) -> None:
        """Raise an `InputError` where there is no run to resume, or it was started with
        other settings, or from another model than `init_from`.
        """
        if not self.config.exists():
            raise InputError(
                f"{self.path} holds no run to resume: start it without --resume"
            )
        before = config_from_dict(read_json(self.config), str(self.config))
        differing = differences(fixed_settings(before), fixed_settings(config))
        if init_from is not None:
            given = {"init_from": _place_of(init_from)}
            differing += differences({"init_from": self.started_from()}, given)
        if differing:
            raise InputError(
                f"{self.path} was started with other settings: {', '.join(differing)}: "
                "give the same to go on with it, or start a new run in another "
                f"directory (--init-from {self.path} starts from its weights)"
            )

    def last_checkpoint(self) -> Checkpoint | None:
        """The newest checkpoint, or None where the run was killed before its first.

        Raises:
            InputError: it is damaged. Without its file, the run goes on from the one
                before it, to the same end.
        """
        path = max(self.checkpoint_paths(), default=None)
        if path is None:
            return None
        state = read_checkpoint(path)
        with reading(path):
            return msgspec.convert(state | {"path": path, "state": state}, Checkpoint)

    def checkpoint_paths(self) -> list[Path]:
        """The checkpoints, oldest first."""
        return sorted(self.checkpoints.glob(f"{'[0-9]' * UPDATE_DIGITS}.pt"))

    def checkpoint_path(self, update: int) -> Path:
        """Where the checkpoint of an update is."""
        return self.checkpoints / f"{update:0{UPDATE_DIGITS}d}.pt"

    def save(
        self, update: int, values: Mapping[str, Any], *, keep: int, best: int
    ) -> None:
        """Write a checkpoint atomically, and remove those that are not kept.

        Args:
            update: the number of updates done.
            values: its content.
            keep: how many of the newest are kept.
            best: the update of another one that is kept.
        """
        written = self.checkpoint_path(update)
        # PyTorch forgets why it could not write to a path, but not to a file.
        with (
            atomic_path(written, checksum=True) as partial,
            open(partial, "wb") as file,
        ):
            torch.save(
                {"format": CHECKPOINT, "version": CHECKPOINT_VERSION, **values}, file
            )
        # The one just written stays, whatever its number.
        paths = self.checkpoint_paths()
        kept = {written, self.checkpoint_path(best)}.union(paths[-keep:])
        for path in set(paths) - kept:
            remove(path)


class MetricsLog:
    """Appends lines to `metrics.jsonl`.

    Args:
        path: of the file.
        size: bytes of it that stay; a killed run may have written more.
    """

    def __init__(self, path: Path, *, size: int) -> None:
        # A new checksum of damaged lines would hide that they are.
        check_beside(path)
        self._path = path
        self._file = open(path, "ab")  # noqa: SIM115 (closed by close)
        checksum_path(path).unlink(missing_ok=True)
        self._file.truncate(path.read_bytes()[:size].rfind(b"\n") + 1)

    def write(
        self, kind: str, update: int, words: int, values: Mapping[str, float]
    ) -> None:
        """Append a line (see `MetricsLine`) with metrics, null where not finite."""
        line = {"kind": kind, "update": update, "words": words} | {
            name: value if math.isfinite(value) else None
            for name, value in values.items()
        }
        self._file.write((json.dumps(line) + "\n").encode())
        # A checkpoint says how many bytes of the log belong to it.
        self._file.flush()

    def size(self) -> int:
        """Bytes written so far, all of them on disk."""
        os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Close the file, and write its checksum."""
        self._file.close()
        with atomic_path(checksum_path(self._path)) as beside:
            beside.write_bytes(checksum_line(self._path, self._path.name))


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint onto the CPU and compare its checksums; nothing but tensors and
    plain values is unpickled.
    """
    with reading(path):
        check_archive(path)
        values: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        check_version(path, values, format=CHECKPOINT, version=CHECKPOINT_VERSION)
    return values


def read_metrics(path: Path | str, kind: str) -> list[dict[str, Any]]:
    """The lines of one kind of a run's `metrics.jsonl`, each with the fields of
    `MetricsLine` and metrics, null where not finite.

    Half a last line, which a killed run leaves, is passed over.
    """
    file = RunDirectory(path).metrics
    decode = partial(msgspec.json.decode, type=dict[str, str | int | float | None])
    with reading(file):
        whole, _, _ = file.read_bytes().rpartition(b"\n")
        lines = map(decode, whole.splitlines())
        return [
            each for each in lines if msgspec.convert(each, MetricsLine).kind == kind
        ]


def _place_of(model: str) -> str:
    """The absolute path of a model; the name stays of one that is installed."""
    is_name = not os.path.exists(model) and model in installed_models()
    return model if is_name else os.path.abspath(model)
