"""Saved probes: trained probes on disk.

`probe.json` holds the task, the settings, the vocabulary, the kind of inputs and the line of results, and
`probe.safetensors` the weights. The word vectors and features that it reads are named by fingerprint, not copied.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from downstream.inputs.kinds import INPUT_KINDS
from downstream.inputs.probe_inputs import InputSources, ProbeInputs
from downstream.inputs.state_settings import layer_rows, numbers_of_layers
from downstream.probe.settings import ReaderOptions, TrainingSettings
from downstream.probe.task import Probe, Task
from downstream.results.records import encoder_identity, layer_names, word_vectors_identity
from elmoc.encoders.bidirectional import check_finite, check_weights
from elmoc.errors import InputError, reason, shortened
from elmoc.files.checksums import FileChecksum
from elmoc.files.records import convert, read_record, write_json
from elmoc.files.text import require_file
from elmoc.files.writing import atomic_directory
from elmoc.settings import differences, setting

FORMAT, VERSION = "elmoc-probe", 3
RECORD, WEIGHTS = "probe.json", "probe.safetensors"
ADVICE = "train the probe again"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ProbeRecord:
    """What is in `probe.json`."""

    task: str
    kind: str = setting(choices=tuple(INPUT_KINDS))
    seed: int
    settings: dict[str, Any]
    vocabulary: dict[str, Any]
    record: dict[str, Any]
    weights: FileChecksum | None = None
    """Of `probe.safetensors`; None in version 2."""


@dataclass(frozen=True)
class LayerMix:
    """The scalar mix of a trained probe: layer → softmax weight, and the scale."""

    weights: dict[str, float]
    scale: float


@dataclass(frozen=True, kw_only=True)
class SavedProbe(ProbeRecord):
    """All that scoring a trained probe on other data needs, and the line of results of its training."""

    path: Path

    def save(self, probe: Probe[Any, Any]) -> None:
        """Write the directory, in the place of what a stopped run may have left."""
        weights = {name: weight.detach().cpu().contiguous() for name, weight in probe.state_dict().items()}
        content = {each.name: getattr(self, each.name) for each in fields(ProbeRecord)}
        with atomic_directory(self.path) as partial:
            safetensors.torch.save_file(weights, partial / WEIGHTS)
            content["weights"] = asdict(FileChecksum.of(partial / WEIGHTS))
            write_json(partial / RECORD, {"format": FORMAT, "version": VERSION, **content})

    def settings_of(self, task: Task[Any, Any]) -> TrainingSettings:
        """The hyper-parameters of its training; raises `InputError` where this elmoc has others."""
        return self._converted(self.settings, type(task.published), "settings.")

    def reader_of(self, task: Task[Any, Any], given: Mapping[str, Any]) -> ReaderOptions:
        """How its data was read, but for what is `given`; raises `InputError` where this elmoc has other options."""
        values = asdict(task.reader) | self.record["reader"] | dict(given)
        return self._converted(values, type(task.reader), "record.reader.")

    def rebuild(self, task: Task[Any, Any], sources: InputSources) -> Probe[Any, Any]:
        """The probe with its trained weights, reading from `sources`, which must be those it was trained on.

        The weights are compared with the settings before anything of these sizes is made.
        """
        self.check_sources(sources.describe())
        vocabulary = dict(vars(self._converted(self.vocabulary, task.vocabulary_type, "vocabulary.")))
        settings = self.settings_of(task)
        weights = self._read_weights()
        with torch.device("meta"):
            inputs = self._inputs(sources, settings)
            expected = task.build(vocabulary=vocabulary, inputs=inputs, settings=settings).state_dict()
        try:
            check_weights(weights, expected)
            check_finite(weights)
        except InputError as error:
            raise InputError(f"{self.path / WEIGHTS} does not fit its probe.json ({error}): {ADVICE}") from None
        probe = task.build(vocabulary=vocabulary, inputs=self._inputs(sources, settings), settings=settings)
        probe.load_state_dict(weights)
        return probe

    def mix(self) -> LayerMix:
        """The mix of layer states, which the probe must read; raises `InputError` where its weights are damaged."""
        weights = self._read_weights()
        mixed = {name: weight for name, weight in weights.items() if name.startswith("inputs.mix.")}
        try:
            layers = self._layer_names(len(mixed) - 1)
            names = [*(f"inputs.mix.scalar_parameters.{row}" for row in range(len(layers))), "inputs.mix.gamma"]
            check_weights(mixed, dict.fromkeys(names, torch.zeros(1)))
            check_finite(mixed)
        except InputError as error:
            raise InputError(f"{self.path / WEIGHTS} does not fit its probe.json ({error}): {ADVICE}") from None
        *parameters, scale = (mixed[name] for name in names)
        return LayerMix(dict(zip(layers, torch.cat(parameters).softmax(dim=0).tolist(), strict=True)), float(scale))

    def _layer_names(self, count: int) -> list[str]:
        """The layers that are mixed, as the features call them; raises `InputError` unless there are `count`."""
        chosen, known = str(self.record["settings"]["state_layers"]), layer_names(self.record["features"])
        if known:
            names = [known[row] for row in layer_rows(chosen, known)]
        elif chosen == "all":
            names = list(map(str, range(count)))
        else:
            names = list(map(str, numbers_of_layers(chosen))) or [chosen]
        if len(names) != count:
            raise InputError(f"there are {count} layers in the mix, not {len(names)}")
        return names

    def record_of(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Its line of results, for a run that has the same settings, data and inputs; raises `InputError` if not.

        facts  of the run's lines of results, which hold before training
        """
        for name in ("task", "inputs", "split", "settings", "reader", "fingerprints"):
            if self.record[name] != facts[name]:
                what = "data" if name == "fingerprints" else name
                raise InputError(
                    f"{self.path} was trained with other {what} than this run has: {self._difference(name, facts)}: "
                    "choose another directory for --save, or remove it"
                )
        self.check_sources(facts)
        return self.record | {"dataset": facts["dataset"]}

    def _difference(self, name: str, facts: Mapping[str, Any]) -> str:
        """What differs in a field of lines of results that a run has otherwise: of data, the splits and their files."""
        before, now = self.record[name], facts[name]
        if name == "fingerprints":
            splits = [split for split in before | now if before.get(split) != now.get(split)]
            files = {split: ", ".join(self.record["data"].get(split, ["nothing"])) for split in splits}
            return shortened("; ".join(f"{split} was {each}" for split, each in files.items()), 300)
        if isinstance(before, dict):
            return ", ".join(differences(before, dict.fromkeys(before) | now))
        return f"{shortened(before)}, not {shortened(now)}"

    def check_sources(self, described: Mapping[str, Any]) -> None:
        """Raise an `InputError` unless `features` and `vectors`, as described, are those of the training."""
        for name, identity in (("features", encoder_identity), ("vectors", word_vectors_identity)):
            trained, given = self.record[name], described[name]
            if trained is not None and given is not None and identity(trained) != identity(given):
                raise InputError(
                    f"{self.path} was trained on other {name} ({shortened(identity(trained))}) than those given "
                    f"({shortened(identity(given))}): give the former, or train the probe again"
                )

    def _inputs(self, sources: InputSources, settings: TrainingSettings) -> ProbeInputs:
        try:
            return ProbeInputs(sources, settings)
        except InputError as error:
            raise InputError(f"{self.path / RECORD}: {error}: {ADVICE}") from None

    def _converted(self, value: Any, kind: type[T], prefix: str) -> T:
        return convert(value, kind, where=str(self.path / RECORD), advice=ADVICE, prefix=prefix)

    def _read_weights(self) -> dict[str, Tensor]:
        path = self.path / WEIGHTS
        require_file(path)
        if self.weights is not None:
            self.weights.check_whole(path, advice=ADVICE)
        try:
            return safetensors.torch.load_file(path)
        except SafetensorError as error:
            raise InputError(f"{path} cannot be read ({reason(error)}): {ADVICE}") from None


def is_saved(path: Path) -> bool:
    """Whether there is a probe; raises `InputError` for a directory that is there and holds something else."""
    names = set(os.listdir(path)) if path.is_dir() else set()
    if RECORD not in names and any(name != WEIGHTS and not name.startswith(".") for name in names):
        raise InputError(f"{path} holds no probe, but other files: choose another directory for --save, or move them")
    return RECORD in names


def read_probe(path: Path) -> SavedProbe:
    """Read a probe directory; raises `InputError` when it is missing, incomplete or foreign."""
    file = path / RECORD
    content = read_record(
        file, ProbeRecord, format=FORMAT, version=VERSION, oldest=2, advice=f"{ADVICE}, or give a directory of --save"
    )
    return SavedProbe(path=path, **vars(content))
