"""Run directory: the files of a run, written so that it can go on after it was killed.

config.json       the resolved config
start.json        the model that the run started from, where it did by --init-from, and the launch by torchrun
metrics.jsonl     one JSON object a line: training and evaluation metrics
checkpoints/UPDATE.pt   all that going on needs; the last k and the best are kept
tensorboard/      events, where TensorBoard is installed
model/            the exported model directory: the best evaluation so far
"""

import fcntl
import json
import math
import os
import pickle
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from elmoc.errors import InputError
from elmoc.files.records import check_version, read_json, write_json
from elmoc.files.writing import atomic_path, require_space
from pretrain.config import RunConfig, config_from_dict, config_to_dict

FORMAT = "elmoc-checkpoint"
VERSION = 2
FREE_TO_CHANGE = {
    *(f"train.{name}" for name in ("device", "threads", "parallel", "precision")),
    *(f"train.{name}" for name in ("recurrence", "recompute", "cuda_graph")),
    *(f"data.{name}" for name in ("corpus", "input_vectors", "target_vectors", "tables_on_device")),
    *(f"log.{name}" for name in ("every_updates", "checkpoint_minutes", "checkpoint_updates", "keep")),
}
"""Settings that a resumed run may be given anew: where it runs, what it leaves, and where its data is now (which is
known by its content). Another device, precision, recurrence or number of threads or processes rounds differently; all
else stays the same."""


class RunDirectory:
    """The files of one run."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.checkpoints = self.path / "checkpoints"
        self.model = self.path / "model"
        self.metrics = self.path / "metrics.jsonl"

    def start(self, config: RunConfig, *, parameters: int, init_from: str | None, launch: str | None = None) -> None:
        """Make the directory of a run with `parameters` trainable parameters; `launch` names what it was started by.

        One that is there already, or a disk that is too small for what the run will keep, is an `InputError`.
        """
        if (self.path / "config.json").exists():
            raise InputError(f"{self.path} holds a run already: go on with it by --resume, or choose another directory")
        # a checkpoint holds weights and Adam's two moments; one more than is kept is there while it is written
        checkpoints, models = config.log.keep + 2, 2
        require_space(self.path, (3 * checkpoints + models) * 4 * parameters)
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        write_json(self.path / "start.json", {"init_from": init_from, "launch": launch})
        write_json(self.path / "config.json", config_to_dict(config))

    @property
    def init_from(self) -> str | None:
        """The model directory that the run started from, if it did."""
        return read_json(self.path / "start.json", advice="start another run")["init_from"]

    def was_started_by(self, launch: str | None) -> bool:
        """Whether there is a run, and this launch started it (and may go on with it unasked)."""
        if launch is None or not (self.path / "config.json").exists():
            return False
        return read_json(self.path / "start.json", advice="start another run").get("launch") == launch

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training in this directory; one that does is an `InputError`."""
        with open(self.path / "config.json", "rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"another process is training in {self.path}: wait for it, or stop it") from None
            yield

    def resume(self, config: RunConfig) -> dict[str, Any] | None:
        """The newest checkpoint of the run that is there, or None when it was killed before its first.

        Raises `InputError` when there is no run, or it was started with other settings.
        """
        if not (self.path / "config.json").exists():
            raise InputError(f"{self.path} holds no run to resume: start it without --resume")
        path = self.path / "config.json"
        saved = fixed_settings(config_from_dict(read_json(path, advice="start another run"), str(path)))
        differing = [
            f"{key} (was {saved[key]!r}, is {value!r})"
            for key, value in fixed_settings(config).items()
            if saved[key] != value
        ]
        if differing:
            raise InputError(f"{self.path} was started with other settings: {', '.join(differing)}")
        found = self.checkpoint_paths()
        return read_checkpoint(found[-1]) if found else None

    def remove_leftovers(self) -> None:
        """Remove what a killed process had not finished writing (only while the directory is locked)."""
        for partial in self.checkpoints.glob(".*.partial"):
            partial.unlink()
        for unfinished in self.path.glob(f".{self.model.name}.*"):
            shutil.rmtree(unfinished)

    def checkpoint_paths(self) -> list[Path]:
        """The checkpoints, oldest first."""
        return sorted(self.checkpoints.glob("*.pt"))

    def save(self, update: int, state: dict[str, Any], *, keep: int, best: int | None) -> None:
        """Write a checkpoint; of the others the newest `keep` − 1 and that of update `best` are kept."""
        with atomic_path(self.checkpoints / f"{update:09d}.pt") as partial:
            torch.save({"format": FORMAT, "version": VERSION, **state}, partial)
        kept = {path.name for path in self.checkpoint_paths()[-keep:]}
        if best is not None:
            kept.add(f"{best:09d}.pt")
        for path in self.checkpoint_paths():
            if path.name not in kept:
                path.unlink()


def fixed_settings(config: RunConfig) -> dict[str, Any]:
    """The settings that stay the same as long as a run goes on, as `section.key`."""
    return {
        f"{section}.{name}": value
        for section, values in config_to_dict(config).items()
        for name, value in values.items()
        if f"{section}.{name}" not in FREE_TO_CHANGE
    }


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint (without unpickling anything but tensors and plain values)."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError, zipfile.BadZipFile) as error:
        problem = str(error).split("\n")[0]
        raise InputError(f"{path} is damaged ({problem}): remove it to go on from the one before") from None
    check_version(path, state, format=FORMAT, version=VERSION, advice="start another run")
    return state


class MetricsLog:
    """Appends to `metrics.jsonl`, and to TensorBoard where it is installed.

    Args:
        run: the run directory.
        size: bytes of `metrics.jsonl` to keep; what a killed run wrote after its last checkpoint is cut off.
        update: that of the checkpoint; later TensorBoard events are cut off, too.
    """

    def __init__(self, run: RunDirectory, *, size: int, update: int) -> None:
        self._file = open(run.metrics, "ab")  # noqa: SIM115 (closed by close)
        self._file.truncate(size)
        self._file.seek(size)
        self._tensorboard: Any = None
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self._tensorboard = SummaryWriter(str(run.path / "tensorboard"), purge_step=update + 1)

    def write(self, kind: str, update: int, words: int, values: dict[str, float]) -> None:
        """Append a line: its kind, where the run stands, and the metrics (null for one that is not finite)."""
        finite = {name: value if math.isfinite(value) else None for name, value in values.items()}
        line = json.dumps({"kind": kind, "update": update, "words": words, **finite}) + "\n"
        self._file.write(line.encode())
        self._file.flush()
        if self._tensorboard is not None:
            for name, value in values.items():
                self._tensorboard.add_scalar(f"{kind}/{name}", value, update)

    def size(self) -> int:
        """Bytes written so far, all of them on disk."""
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()


def read_metrics(path: Path | str, kind: str) -> list[dict[str, Any]]:
    """The lines of one kind (`train` or `evaluation`) of a run's `metrics.jsonl`."""
    file = RunDirectory(path).metrics
    if not file.exists():
        raise InputError(f"{file} does not exist: {path} is not a run directory")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["kind"] == kind]
