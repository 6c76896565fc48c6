"""Run directory: the files of a run, written so that it can go on after it was killed.

config.json       the resolved config
start.json        the model that the run started from, where it did by --init-from, and the launch by torchrun
metrics.jsonl     one JSON object a line: training and evaluation metrics
checkpoints/UPDATE.pt   all that going on needs; the last k and the best are kept
tensorboard/      events, where TensorBoard is installed
word_accuracy.json    of a model that reads subwords, where it was measured
model/            the exported model directory: the best evaluation so far
"""

import json
import math
import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from elmoc.errors import InputError, reason
from elmoc.files.checksums import check_archive
from elmoc.files.locks import locked, tidy_folder
from elmoc.files.records import check_version, convert, parse_json, read_json, write_json
from elmoc.files.text import MAX_LINE_BYTES, open_binary, require_file
from elmoc.files.writing import atomic_path, require_space
from elmoc.model_directory import WEIGHTS
from elmoc.settings import differences, setting
from elmoc.word_vectors.opening import is_stored
from elmoc.word_vectors.sources import VectorSource
from pretrain.checkpoint import FORMAT, VERSION, Checkpoint
from pretrain.config import RunConfig, config_from_dict, config_to_dict, fixed_settings

NEW_RUN = "start another run"
WORD_ACCURACY = "word_accuracy.json"


@dataclass(frozen=True)
class Start:
    """What `start.json` says: the model that a run started from, and the launch by `torchrun`, where there are.

    init_from: its absolute path; in runs of older versions as it was given.
    started_from: its training record.
    """

    init_from: str | None
    launch: str | None = None
    started_from: dict[str, Any] | None = None


class RunDirectory:
    """The files of one run."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.checkpoints = self.path / "checkpoints"
        self.model = self.path / "model"
        self.metrics = self.path / "metrics.jsonl"

    def require_new(self) -> None:
        """Raise an `InputError` when there is a run, what one has left, a model, or something that is no directory."""
        self._require_no_model()
        if os.path.lexists(self.config):
            raise InputError(f"{self.path} holds a run already: go on with it by --resume, or choose another directory")
        for left in [*self.checkpoint_paths()[-1:], self.metrics, self.model]:
            if os.path.lexists(left):
                raise InputError(f"{left} is of another run: move what it has left there, or choose another directory")
        if os.path.lexists(self.path / "corpus.json"):
            raise InputError(f"{self.path} is a corpus directory: choose another directory for the run")
        if os.path.lexists(self.path) and not self.path.is_dir():
            raise InputError(f"{self.path} is not a directory, as a run is: choose another name")

    def _require_no_model(self) -> None:
        if os.path.lexists(self.path / WEIGHTS):
            raise InputError(
                f"{self.path} is a model directory: choose another directory for the run (--init-from {self.path} "
                "starts from its weights)"
            )

    def start(self, config: RunConfig, start: Start, *, parameters: int) -> None:
        """Make the directory of a run with `parameters` trainable parameters.

        One that is there already, or a disk that is too small for what the run will keep, is an `InputError`.
        """
        self.require_new()
        # one checkpoint more than is kept is there while it is written
        checkpoints, models = config.log.keep + 2, 2
        require_space(self.path, (config.optimiser.values_of_a_weight * checkpoints + models) * 4 * parameters)
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        write_json(self.path / "start.json", asdict(start))
        write_json(self.config, config_to_dict(config))

    def read_config(self) -> RunConfig:
        """The resolved config; an `InputError` where it is damaged."""
        return config_from_dict(read_json(self.config, advice=NEW_RUN), str(self.config), advice=NEW_RUN)

    def differing_settings(self, config: RunConfig, *, but: Collection[str] = ()) -> list[str]:
        """The settings that may not change while a run goes on, but for some, in which `config` differs from its own.

        Each with what it was, and what it is.
        """
        now = {key: value for key, value in fixed_settings(config).items() if key not in but}
        return differences(fixed_settings(self.read_config()), now)

    @property
    def init_from(self) -> str | None:
        """The model directory that the run started from, if it did."""
        return self._start.init_from

    @property
    def started_from(self) -> dict[str, Any] | None:
        """The training record of that model; None in runs of older versions."""
        return self._start.started_from if (self.path / "start.json").exists() else None

    def require_same_model(self, training: dict[str, Any] | None) -> None:
        """Raise an `InputError` when the model that the run started from has another training record by now."""
        if self.started_from not in (None, training):
            raise InputError(f"{self.init_from} has another model than when {self.path} was started from it: {NEW_RUN}")

    def was_started_by(self, launch: str | None) -> bool:
        """Whether there is a run, and this launch started it (and may go on with it unasked)."""
        return launch is not None and os.path.lexists(self.config) and self._start.launch == launch

    @property
    def _start(self) -> Start:
        path = self.path / "start.json"
        return convert(read_json(path, advice=NEW_RUN), Start, where=str(path), advice=NEW_RUN)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training in this directory, and remove what those that were killed left there.

        Another process that trains there is an `InputError`.
        """
        with locked(self.config):
            for folder in (self.path, self.checkpoints):
                tidy_folder(folder)
            yield

    def require_resumable(self) -> None:
        """Raise an `InputError` when there is no run to resume."""
        self._require_no_model()
        if not os.path.lexists(self.config):
            raise InputError(f"{self.path} holds no run to resume: start it without --resume")

    def resume(self, config: RunConfig) -> Checkpoint | None:
        """The newest checkpoint of the run that is there, or None when it was killed before its first.

        Raises `InputError` when there is no run, or it was started with other settings.
        """
        self.require_resumable()
        if differing := self.differing_settings(config):
            raise InputError(
                f"{self.path} was started with other settings: {', '.join(differing)}: give the same to go on with it, "
                f"or start a new run in another directory (--init-from {self.path} starts from its weights)"
            )
        self.checkpoints.mkdir(exist_ok=True)
        found = self.checkpoint_paths()
        if not found:
            return None
        values = read_checkpoint(found[-1], advice=self.removal_advice)
        del values["format"], values["version"]
        checkpoint = convert(values, Checkpoint, where=str(found[-1]), advice=self.removal_advice)
        if found[-1] != self.checkpoint_path(checkpoint.update):
            raise InputError(
                f"{found[-1]}: update is {checkpoint.update}, which is not in its name: {self.removal_advice}"
            )
        return checkpoint

    def stored_vectors(self, source: VectorSource) -> Path | None:
        """The file of these word vectors in the exported model; None where it has none."""
        path = self.model / source.file_name
        return path if is_stored(source.origin) and path.is_file() else None

    @property
    def removal_advice(self) -> str:
        """What to do about the newest checkpoint when it is damaged."""
        before = len(self.checkpoint_paths()) > 1
        return "remove it to go on from the one before" if before else "remove it to begin the run again"

    def checkpoint_paths(self) -> list[Path]:
        """The checkpoints, oldest first."""
        return sorted(self.checkpoints.glob(f"{'[0-9]' * 9}.pt"))

    def checkpoint_path(self, update: int) -> Path:
        """Where the checkpoint of an update is."""
        return self.checkpoints / f"{update:09d}.pt"

    def save(self, update: int, state: dict[str, Any], *, keep: int, best: int | None) -> None:
        """Write a checkpoint; of the others the newest `keep` − 1 and that of update `best` are kept."""
        with atomic_path(self.checkpoint_path(update)) as partial:
            torch.save({"format": FORMAT, "version": VERSION, **state}, partial)
        self.remove_checkpoints(keep=keep, best=best, written=update)

    def remove_checkpoints(self, *, keep: int, best: int | None, written: int | None = None) -> None:
        """Remove all checkpoints but the newest `keep`, that of update `best`, and the one just `written`."""
        kept = self.checkpoint_paths()[-keep:]
        kept += [self.checkpoint_path(update) for update in (best, written) if update is not None]
        for path in self.checkpoint_paths():
            if path not in kept:
                path.unlink()


def read_checkpoint(path: Path, *, advice: str = "remove it") -> dict[str, Any]:
    """Read a checkpoint (without unpickling anything but tensors and plain values), and compare its checksums.

    Raises `InputError` with the `advice` when it is damaged.
    """
    require_file(path)
    try:
        check_archive(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # what a damaged archive may raise is not documented
        if isinstance(error, OSError) and error.filename:
            raise
        problem = reason(str(error).split("\n")[0])
        raise InputError(f"{path} is damaged ({problem}): {advice}") from None
    check_version(path, state, format=FORMAT, version=VERSION, advice=advice)
    return state


class MetricsLog:
    """Appends to `metrics.jsonl`, and to TensorBoard where it is installed.

    Args:
        run: the run directory.
        size: bytes of `metrics.jsonl` to keep; what a killed run wrote after its last checkpoint is cut off.
        update: that of the checkpoint; later TensorBoard events are cut off, too.
    """

    def __init__(self, run: RunDirectory, *, size: int, update: int) -> None:
        self._path = run.metrics
        kept = 0
        if os.path.lexists(self._path):
            require_file(self._path)
            kept = self._path.read_bytes()[:size].rfind(b"\n") + 1
        if kept < size:
            print(
                f"warning: {self._path} has lost {size - kept:,} of the {size:,} bytes that belong to the checkpoint: "
                "the run goes on without these lines",
                file=sys.stderr,
            )
        self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115 (closed by close)
        self._file.truncate(kept)
        self._tensorboard: Any = None
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self._tensorboard = SummaryWriter(str(run.path / "tensorboard"), purge_step=update + 1)

    def write(self, kind: str, update: int, words: int, values: dict[str, float]) -> None:
        """Append a line: its kind, where the run stands, and the metrics (null for one that is not finite)."""
        finite = {name: value if math.isfinite(value) else None for name, value in values.items()}
        line = memoryview((json.dumps({"kind": kind, "update": update, "words": words, **finite}) + "\n").encode())
        while line:
            line = line[self._file.write(line) :]
        if self._tensorboard is not None:
            for name, value in values.items():
                self._tensorboard.add_scalar(f"{kind}/{name}", value, update)

    def size(self) -> int:
        """Bytes written so far, all of them on disk."""
        os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()


@dataclass(frozen=True)
class MetricsLine:
    """A line of `metrics.jsonl`, whose other keys are the metrics; null is one that was not finite."""

    kind: str = setting(choices=("train", "evaluation"))
    update: int = setting(least=0)
    words: float = setting(least=0, most=2**63)
    metrics: dict[str, float | None] = field(default_factory=dict)


def read_metrics(path: Path | str, kind: str) -> list[dict[str, Any]]:
    """The lines of one kind (`train` or `evaluation`) of a run's `metrics.jsonl`.

    A last line that a kill left half written is passed over; any other that is damaged is an `InputError`.
    """
    file = RunDirectory(path).metrics
    if not os.path.lexists(file):
        raise InputError(f"{file} does not exist: {path} is not a run directory")
    lines, damage = [], None
    with open_binary(file) as opened:
        for number, content in enumerate(iter(lambda: opened.readline(MAX_LINE_BYTES), b""), 1):
            if damage is not None:
                raise damage
            where, advice = f"{file}, line {number}", "correct or remove that line"
            try:
                value = parse_json(content, where=where, advice=advice)
            except InputError as error:
                damage = error
                continue
            line = convert(value, dict[str, Any], where=where, advice=advice)
            of_all = {each: line[each] for each in ("kind", "update", "words") if each in line}
            metrics = {each: value for each, value in line.items() if each not in of_all}
            convert({**of_all, "metrics": metrics}, MetricsLine, where=where, advice=advice)
            lines.append(line)
    return [line for line in lines if line["kind"] == kind]
