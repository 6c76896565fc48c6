"""Suite files: which probes does a suite have, on which data, with which seeds and
options?

`english.toml` begins with all that a suite file can say.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from downstream.inputs.options import INPUT_KINDS
from downstream.probe.task import Task
from downstream.results.records import without_state_settings
from downstream.results.rows import Tasks
from downstream.settings import ReaderOptions, TrainingSettings, settings_of_inputs
from elmoc.errors import InputError
from elmoc.files.checksums import fingerprint
from elmoc.files.records import read_toml
from elmoc.settings import convert

INPUTS = ("vectors", "features", "both")
Options = dict[str, bool | int | float | str]
Files = str | list[str]
Seeds = Annotated[int, Meta(ge=1)]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Options of a probe, or of its part in the quick suite; None leaves what is said
    elsewhere.

    Options of one kind of inputs go before options of all.
    """

    seeds: Seeds | None = None
    baseline_seeds: Seeds | None = None
    options: Options = field(default_factory=dict)
    vectors: Options = field(default_factory=dict)
    features: Options = field(default_factory=dict)
    both: Options = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ProbeEntry(Changes):
    """A `[[probe]]` of a suite file."""

    task: str
    name: str
    train: Files
    dev: Files
    test: Files | None = None
    preset: Literal["small", "published"] = "small"
    quick: Changes | None = None


@dataclass(frozen=True, kw_only=True)
class SuiteEntries:
    """What is in a suite file."""

    probe: list[ProbeEntry]
    vectors: Files = field(default_factory=list)
    seeds: Seeds = 3


@dataclass(frozen=True)
class SuiteProbe:
    """A probe as it is run: its task, data and reader, and for each kind of inputs the
    number of seeds and settings.
    """

    task: Task[Any, Any]
    name: str
    files: Mapping[str, list[Path]]
    preset: str
    reader: ReaderOptions
    seeds: Mapping[str, int]
    settings: Mapping[str, TrainingSettings]

    @property
    def identity(self) -> str:
        """Equal for probes whose results are compared: of one task, with the same
        settings but for layer states.
        """
        settings = {
            inputs: without_state_settings(asdict(each))
            for inputs, each in self.settings.items()
        }
        return fingerprint(
            [json.dumps([self.task.name, settings], sort_keys=True).encode()]
        )

    @property
    def file_name(self) -> str:
        """Its name as files can have it."""
        return re.sub(r"[^\w.-]+", "-", f"{self.task.name}-{self.name}", flags=re.ASCII)


def read_suite(
    path: Path, tasks: Tasks, *, data: Path | None = None, quick: bool = False
) -> tuple[list[str], list[SuiteProbe]]:
    """Word vectors and probes of a suite file, or of the quick part of it.

    Paths of data are relative to `data`, or else to the folder of the suite file.
    Raises `InputError` with file and field for impossible values.
    """
    suite = convert(read_toml(path), SuiteEntries, where=str(path))
    probes = []
    for entry in suite.probe:
        changes = entry.quick if quick else Changes()
        if changes:
            where = f"{path}: probe {entry.name}"
            probes.append(
                _probe(
                    entry,
                    changes,
                    tasks,
                    seeds=suite.seeds,
                    where=where,
                    data=data or path.parent,
                )
            )
    if len({probe.file_name.lower() for probe in probes}) < len(probes):
        raise InputError(f"{path}: two probes of one task have the same name")
    vectors = _listed(suite.vectors)
    return [
        each if each.startswith("random:") else str(path.parent / each)
        for each in vectors
    ], probes


def _probe(
    entry: ProbeEntry,
    changes: Changes,
    tasks: Tasks,
    *,
    seeds: int,
    where: str,
    data: Path,
) -> SuiteProbe:
    """A probe as it is run; what `changes` say goes before what the entry says."""
    if entry.task not in tasks:
        raise InputError(
            f"{where}: task must be one of {', '.join(tasks)}, not {entry.task!r}"
        )
    task = tasks[entry.task]()
    seeds = changes.seeds or entry.seeds or seeds
    baseline = changes.baseline_seeds or entry.baseline_seeds or seeds
    defaults = task.small if entry.preset == "small" else task.published
    options = entry.options | changes.options
    reader = {
        each.name: options.pop(each.name)
        for each in fields(task.reader)
        if each.name in options
    }
    settings: dict[str, TrainingSettings] = {}
    for kind in INPUTS:
        of_kind: Options = getattr(entry, kind) | getattr(changes, kind)
        if "train_fraction" in of_kind:
            raise InputError(
                f"{where}: {kind}.train_fraction: all inputs have the same data"
            )
        found = convert(
            asdict(defaults) | options | of_kind, type(defaults), where=where
        )
        settings[kind] = settings_of_inputs(found, INPUT_KINDS[kind])
    files = {"train": entry.train, "dev": entry.dev, "test": entry.test or []}
    return SuiteProbe(
        task=task,
        name=entry.name,
        files={
            split: [data / each for each in _listed(names)]
            for split, names in files.items()
            if names
        },
        preset=entry.preset,
        reader=convert(asdict(task.reader) | reader, type(task.reader), where=where),
        seeds={kind: baseline if kind == "vectors" else seeds for kind in INPUTS},
        settings=settings,
    )


def _listed(names: Files) -> list[str]:
    return [names] if isinstance(names, str) else names
