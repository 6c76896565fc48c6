"""Run directory: the files of a run, written so that it can go on after it was killed.

config.json       the resolved config
start.json        the model that the run started from, where it did by --init-from
metrics.jsonl     one JSON object a line: training and evaluation metrics
checkpoints/UPDATE.pt   all that going on needs; the last k and the best are kept
model/            the exported model directory: the best evaluation so far

A checkpoint is a dictionary of tensors and plain values, as `torch.save` writes it: all
of `TrainState.to_dict`, and

data              the fingerprints of corpus and tables
started_from      the training record of the model that the run began with by
`--init-from`, if it did metrics_bytes     how much of `metrics.jsonl` belongs to it
unlogged          what the updates since the last line of `metrics.jsonl` did, in each
direction (see `DirectionStep`)
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from elmoc.errors import InputError, reading
from elmoc.files.checksums import check_archive
from elmoc.files.records import check_version, read_json, write_json
from elmoc.files.writing import atomic_path, locked, remove
from elmoc.model_directory import WEIGHTS
from pretrain.config import (
    RunConfig,
    config_from_dict,
    config_to_dict,
    differences,
    fixed_settings,
)

CHECKPOINT = "elmoc-checkpoint"
CHECKPOINT_VERSION = 3


class RunDirectory:
    """The files of one run."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.start_record = self.path / "start.json"
        self.checkpoints = self.path / "checkpoints"
        self.model = self.path / "model"
        self.metrics = self.path / "metrics.jsonl"

    def require_new(self) -> None:
        """Raise an `InputError` when there is a run, what one has left, a model or a
        corpus.
        """
        if self.config.exists():
            raise InputError(
                f"{self.path} holds a run already: go on with it by --resume, or choose another directory"
            )
        for left in (
            self.checkpoints,
            self.metrics,
            self.model,
            self.path / WEIGHTS,
            self.path / "corpus.json",
        ):
            if left.exists() and not (
                left == self.checkpoints and not any(left.iterdir())
            ):
                raise InputError(
                    f"{left} is there already: choose another directory for the run"
                )

    def start(self, config: RunConfig, init_from: str | None) -> None:
        """Make the directory of a new run, which starts from the model `init_from`, if
        any.
        """
        self.require_new()
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        write_json(
            self.start_record, {"init_from": init_from and os.path.abspath(init_from)}
        )
        write_json(self.config, config_to_dict(config))

    def started_from(self) -> str | None:
        """The model that the run started from, if any."""
        with reading(self.start_record):
            path: str | None = read_json(self.start_record)["init_from"]
            return path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training in this directory, and remove what those
        that were killed left there.
        """
        with locked(self.config):
            for left in [
                *self.path.glob(".*.partial"),
                *self.checkpoints.glob(".*.partial"),
            ]:
                remove(left)
            yield

    def require_resumable(self, config: RunConfig) -> None:
        """Raise an `InputError` when there is no run to resume, or it was started with
        other settings.
        """
        if not self.config.exists():
            raise InputError(
                f"{self.path} holds no run to resume: start it without --resume"
            )
        before = config_from_dict(read_json(self.config), str(self.config))
        if differing := differences(fixed_settings(before), fixed_settings(config)):
            raise InputError(
                f"{self.path} was started with other settings: {', '.join(differing)}: give the same to go on with it, "
                f"or start a new run in another directory (--init-from {self.path} starts from its weights)"
            )

    def last_checkpoint(self) -> dict[str, Any] | None:
        """The newest checkpoint, or None when the run was killed before its first."""
        found = self.checkpoint_paths()
        return read_checkpoint(found[-1]) if found else None

    def checkpoint_paths(self) -> list[Path]:
        """The checkpoints, oldest first."""
        return sorted(self.checkpoints.glob(f"{'[0-9]' * 9}.pt"))

    def checkpoint_path(self, update: int) -> Path:
        """Where the checkpoint of an update is."""
        return self.checkpoints / f"{update:09d}.pt"

    def save(
        self, update: int, values: Mapping[str, Any], *, keep: int, best: int | None
    ) -> None:
        """Write a checkpoint atomically; the newest `keep` are kept, and the one of
        update `best`.
        """
        written = self.checkpoint_path(update)
        with atomic_path(written) as partial:
            torch.save(
                {"format": CHECKPOINT, "version": CHECKPOINT_VERSION, **values}, partial
            )
        kept = {
            written,
            *self.checkpoint_paths()[-keep:],
            *([] if best is None else [self.checkpoint_path(best)]),
        }
        for path in set(self.checkpoint_paths()) - kept:
            path.unlink()


class MetricsLog:
    """Appends to `metrics.jsonl` behind its first `size` bytes: a killed run may have
    written more.
    """

    def __init__(self, path: Path, *, size: int) -> None:
        kept = path.read_bytes()[:size].rfind(b"\n") + 1 if path.exists() else 0
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (closed by close)
        self._file.truncate(kept)

    def write(
        self, kind: str, update: int, words: int, values: Mapping[str, float]
    ) -> None:
        """Append a line: its kind, where the run stands, and the metrics (null where
        not finite).
        """
        finite = {
            name: value if math.isfinite(value) else None
            for name, value in values.items()
        }
        line = memoryview(
            (
                json.dumps({"kind": kind, "update": update, "words": words, **finite})
                + "\n"
            ).encode()
        )
        while line:
            line = line[self._file.write(line) :]

    def size(self) -> int:
        """Bytes written so far, all of them on disk."""
        os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Close the file."""
        self._file.close()


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
    """The lines of one kind (`train` or `evaluation`) of a run's `metrics.jsonl`; half
    a last line is passed over.
    """
    file = RunDirectory(path).metrics
    with reading(file):
        content = file.read_bytes()
        lines = [
            json.loads(line)
            for line in content[: content.rfind(b"\n") + 1].splitlines()
        ]
        return [line for line in lines if line["kind"] == kind]
