"""Suite files: which probes does a suite have, on which data, with which seeds and
options?

`english.toml` begins with all that a suite file can say.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from downstream.inputs.options import INPUT_KINDS
from downstream.probe.options import Values
from downstream.probe.task import Task
from downstream.results.records import without_state_settings
from downstream.settings import (
    ReaderOptions,
    TrainingSettings,
    settings_of_inputs,
    with_changes,
)
from downstream.tasks import load_task
from elmoc.errors import InputError, reading
from elmoc.files.checksums import fingerprint
from elmoc.files.records import read_toml
from elmoc.settings import convert
from elmoc.word_vectors.opening import origin_in

Files = str | list[str]
Seeds = Annotated[int, Meta(ge=1)]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Options of a probe, or of its part in the quick suite.

    None leaves what is said elsewhere. Options of one kind of inputs go before options
    of all.
    """

    seeds: Seeds | None = None
    baseline_seeds: Seeds | None = None
    options: Values = field(default_factory=dict)
    vectors: Values = field(default_factory=dict)
    features: Values = field(default_factory=dict)
    both: Values = field(default_factory=dict)


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
    """A probe as it is run.

    task: the task.
    name: of the data.
    files: split → files.
    preset: the hyper-parameters that `settings` begins with: small or published.
    reader: options with which the files are read.
    seeds: kind of inputs → number of seeds.
    settings: kind of inputs → hyper-parameters.
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
            kind: without_state_settings(asdict(each))
            for kind, each in self.settings.items()
        }
        text = json.dumps([self.task.name, settings], sort_keys=True)
        return fingerprint([text.encode()])

    @property
    def file_name(self) -> str:
        """Its name as files can have it."""
        return re.sub(r"[^\w.-]+", "-", f"{self.task.name}-{self.name}", flags=re.ASCII)


@dataclass(frozen=True)
class SuitePlan:
    """What a suite runs.

    name: of the suite.
    vectors: origins of word vectors.
    probes: in the order of the file.
    """

    name: str
    vectors: list[str]
    probes: list[SuiteProbe]


def read_suite(
    path: Path | str, *, data: Path | str | None = None, quick: bool = False
) -> SuitePlan:
    """Read a suite file.

    Args:
        path: of the suite file; `downstream/suite/english.toml` is an example.
        data: the folder where paths of data begin; by default that of the suite file.
        quick: whether the quick part of the suite is meant.

    Raises:
        InputError: names file and field of an impossible value.
    """
    path = Path(path)
    suite = convert(read_toml(path), SuiteEntries, where=str(path))
    probes = []
    for entry in suite.probe:
        changes = entry.quick if quick else Changes()
        if changes is not None:
            folder = Path(data or path.parent)
            with reading(f"{path}: probe {entry.name}"):
                probes.append(_probe(entry, changes, suite.seeds, folder))
    # Their files of results would have one name, where case does not count.
    names = {probe.file_name.lower() for probe in probes}
    if len(names) < len(probes):
        raise InputError(f"{path}: two probes of one task have the same name")
    if not probes:
        raise InputError(f"{path} has no probes")
    # Files are named from the folder of the suite file.
    vectors = [origin_in(path.parent, each) for each in _listed(suite.vectors)]
    return SuitePlan(path.stem, vectors, probes)


def _probe(entry: ProbeEntry, changes: Changes, seeds: int, folder: Path) -> SuiteProbe:
    """A probe as it is run; `changes` go before the values of the entry."""
    task = load_task(entry.task)
    seeds = changes.seeds or entry.seeds or seeds
    baseline = changes.baseline_seeds or entry.baseline_seeds or seeds
    preset = task.small if entry.preset == "small" else task.published
    options = entry.options | changes.options
    # Options of the reader and hyper-parameters stand side by side in a suite file.
    reader = {name: options.pop(name) for name in options.keys() & vars(task.reader)}
    settings: dict[str, TrainingSettings] = {}
    for name, kind in INPUT_KINDS.items():
        of_kind: Values = getattr(entry, name) | getattr(changes, name)
        # The gain is a difference of scores after training on the same examples.
        if "train_fraction" in of_kind:
            raise InputError(f"{name}.train_fraction: all inputs have the same data")
        chosen = with_changes(preset, options | of_kind, name=str)
        settings[name] = settings_of_inputs(chosen, kind)
    files = {"train": entry.train, "dev": entry.dev, "test": entry.test}
    return SuiteProbe(
        task=task,
        name=entry.name,
        files={
            split: list(map(folder.joinpath, _listed(names)))
            for split, names in files.items()
            if names
        },
        preset=entry.preset,
        reader=with_changes(task.reader, reader, name=str),
        seeds={**dict.fromkeys(INPUT_KINDS, seeds), "vectors": baseline},
        settings=settings,
    )


def _listed(names: Files) -> list[str]:
    """What a suite file gives as one name or a list of names."""
    return [names] if isinstance(names, str) else names
