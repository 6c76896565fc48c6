"""Plan of a suite: its file read, checked against the tasks, and each probe with what it is run with."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from downstream.inputs.kinds import INPUT_KINDS
from downstream.inputs.state_settings import numbers_of_layers
from downstream.probe.settings import ReaderOptions, TrainingSettings, settings_of_inputs
from downstream.probe.task import Task
from downstream.results.records import LATER_SETTINGS, without_state_settings
from downstream.suite.entries import ADVICE, INPUTS, Changes, Files, Options, SuiteEntries
from elmoc.errors import InputError, shortened
from elmoc.files.checksums import fingerprint
from elmoc.files.records import convert, read_toml

Tasks = Mapping[str, Callable[[], Task[Any, Any]]]
"""Name → the function that loads the task."""


@dataclass(frozen=True)
class SuiteProbe:
    """A probe as it is run: its task, data, and for each kind of inputs the seeds and the settings.

    options  inputs → what the command line of the task is given
    """

    task: Task[Any, Any]
    name: str
    files: Mapping[str, list[Path]]
    preset: str
    seeds: Mapping[str, int]
    options: Mapping[str, Options]

    @property
    def identity(self) -> str:
        """Equal for probes whose results are to be compared: of one task, with the same settings for all inputs.

        These count whether an option gives them or the preset, which may be another in another release. Settings of
        layer states are the encoder's.
        """
        settings = {inputs: without_state_settings(self.chosen_settings(inputs)) for inputs in INPUTS}
        return fingerprint(json.dumps([self.task.name, settings], sort_keys=True).encode())

    @property
    def earlier_identity(self) -> str:
        """What versions before wrote for it: there, a preset counted by its name, and settings as far as options."""
        options = {inputs: without_state_settings(given) for inputs, given in self.options.items()}
        return fingerprint(json.dumps([self.task.name, self.preset, options], sort_keys=True).encode())

    @property
    def file_name(self) -> str:
        """Its name as files can have it."""
        return re.sub(r"[^\w.-]+", "-", f"{self.task.name}-{self.name}", flags=re.ASCII)

    def settings(self, inputs: str) -> TrainingSettings:
        """The hyper-parameters of its training on these inputs."""
        defaults = self.task.small if self.preset == "small" else self.task.published
        changed: TrainingSettings = _changed(defaults, self.options[inputs], where="", prefix="")
        return settings_of_inputs(changed, INPUT_KINDS[inputs])

    def chosen_settings(self, inputs: str) -> dict[str, Any]:
        """Those settings, but for later ones that are as if there were no choice: so a release may add some."""
        settings = asdict(self.settings(inputs))
        return {name: value for name, value in settings.items() if LATER_SETTINGS.get(name) != value}

    @property
    def reader(self) -> ReaderOptions:
        """How its files are read."""
        return _changed(self.task.reader, self.options["both"], where="", prefix="")


@dataclass(frozen=True)
class Suite:
    """The probes of a suite, and the word vectors that its file names, if any."""

    path: Path
    vectors: Sequence[str]
    probes: Sequence[SuiteProbe]


def read_suite(path: Path, tasks: Tasks, *, data: Path | None = None, quick: bool = False) -> Suite:
    """Read a suite file, or the quick part of it.

    Args:
        path: of the TOML file.
        tasks: those there are.
        data: the folder that paths of data are relative to (default: that of the suite file).
        quick: leave out probes without a `[probe.quick]` table, and change the others as that says.

    Raises:
        InputError: the file is missing, no TOML, or says what is not possible; with the path of the field.
    """
    entries = convert(read_toml(path), SuiteEntries, where=str(path), advice=ADVICE)
    probes = [
        _probe(path, entries, index, tasks, data=data or path.parent, quick=quick)
        for index, entry in enumerate(entries.probe)
        if entry.quick or not quick
    ]
    if not probes:
        raise InputError(f"{path} has no quick suite: give a probe a [probe.quick] table, or run it without --quick")
    names = [probe.file_name.lower() for probe in probes]
    for probe, name in zip(probes, names, strict=True):
        if names.count(name) > 1:
            raise InputError(
                f"{path}: two probes of the task {probe.task.name} are named {shortened(probe.name)!r}, or nearly so: "
                f"{ADVICE}"
            )
    named = [entries.vectors] if isinstance(entries.vectors, str) else entries.vectors or []
    vectors = [each if each.startswith("random:") else str(path.parent / each) for each in named]
    return Suite(path, vectors, probes)


def _probe(path: Path, entries: SuiteEntries, index: int, tasks: Tasks, *, data: Path, quick: bool) -> SuiteProbe:
    entry, where = entries.probe[index], f"probe[{index}]"
    if entry.task not in tasks:
        raise InputError(
            f"{path}: {where}.task must be one of {', '.join(tasks)}, not {shortened(entry.task)!r}: {ADVICE}"
        )
    task = tasks[entry.task]()
    _check_options(task, entry.preset, entry, path=path, prefix=where)
    parts: list[Changes] = [entry]
    if entry.quick:
        _check_options(task, entry.preset, entry.quick, path=path, prefix=f"{where}.quick")
        parts += [entry.quick] if quick else []
    given = {"train": entry.train, "dev": entry.dev, "test": entry.test}
    return SuiteProbe(
        task=task,
        name=entry.name,
        files={split: [data / file for file in _listed(files)] for split, files in given.items() if files},
        preset=entry.preset,
        seeds=_seeds_of(entries, parts),
        options={inputs: _options_of(parts, inputs) for inputs in INPUTS},
    )


def _options_of(parts: Sequence[Changes], inputs: str) -> Options:
    """The options of a kind of inputs: its own go before those of all, those of later parts before earlier ones."""
    options: Options = {}
    for kind in ("options", inputs):
        for part in parts:
            options |= part.all_options(kind)
    return options


def _seeds_of(entries: SuiteEntries, parts: Sequence[Changes]) -> dict[str, int]:
    """The number of seeds of each kind of inputs."""
    seeds = _last([part.seeds for part in parts]) or entries.seeds
    baseline = _last([part.baseline_seeds for part in parts]) or entries.baseline_seeds or seeds
    return {inputs: baseline if inputs == "vectors" else seeds for inputs in INPUTS}


def _last(values: Sequence[Any]) -> Any:
    """The last value that is not None."""
    return next((value for value in reversed(values) if value is not None), None)


def _listed(files: Files) -> list[str]:
    return [files] if isinstance(files, str) else files


def _check_options(task: Task[Any, Any], preset: str, part: Changes, *, path: Path, prefix: str) -> None:
    """Raise an `InputError` for an option that the task's command does not have, or a value that it does not take."""
    defaults = task.small if preset == "small" else task.published
    for kind in ("options", *INPUTS):
        options, where = part.all_options(kind), f"{prefix}.{kind}"
        known: dict[str, Any] = {each.name: defaults for each in fields(defaults)}
        if kind == "options":
            known |= {each.name: task.reader for each in fields(task.reader)}
        else:
            del known["train_fraction"]  # all kinds of inputs have the same data
        for name in options:
            if name not in known:
                raise InputError(
                    f"{path}: {where}.{name} is no option of the task {task.name} (known: {', '.join(known)}): {ADVICE}"
                )
        for settings in {id(each): each for each in known.values()}.values():
            _changed(settings, options, where=str(path), prefix=f"{where}.")
        if "state_layers" in options:
            try:
                numbers_of_layers(str(options["state_layers"]))
            except InputError as error:
                raise InputError(f"{path}: {where}.state_layers: {error}") from None


def _changed(defaults: Any, options: Options, *, where: str, prefix: str) -> Any:
    """The settings with those of the options that are theirs."""
    names = {each.name for each in fields(defaults)}
    values = asdict(defaults) | {name: value for name, value in options.items() if name in names}
    return convert(values, type(defaults), where=where, advice=ADVICE, prefix=prefix)
