"""Saved probes: trained probes on disk.

`probe.json` holds the vocabulary and the line of results, which says the task, the inputs and the settings, and
`probe.safetensors` the weights. The word vectors and features that it reads are named by fingerprint, not copied.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import safetensors.torch

from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sources import InputSources
from downstream.probe.task import Probe, Task
from downstream.results.records import encoder_identity
from downstream.settings import TrainingSettings
from elmoc.encoders.bidirectional import check_finite
from elmoc.errors import InputError, reading
from elmoc.files.checksums import FileChecksum
from elmoc.files.records import convert, read_record, write_json
from elmoc.files.writing import atomic_directory

FORMAT, VERSION = "elmoc-probe", 4
RECORD, WEIGHTS = "probe.json", "probe.safetensors"
# Facts of a line of results that hold before training.
GIVEN = ("task", "inputs", "split", "settings", "reader", "fingerprints")


@dataclass(frozen=True, kw_only=True)
class ProbeRecord:
    """What is in `probe.json`; `record` is the line of results of its training, `weights` those of the other file."""

    vocabulary: dict[str, Any]
    record: dict[str, Any]
    weights: FileChecksum


def save_probe(path: Path, probe: Probe[Any, Any], vocabulary: dict[str, Any], record: dict[str, Any]) -> None:
    """Write a probe's directory; `record` is its line of results, of one seed."""
    weights = {name: weight.detach().cpu().contiguous() for name, weight in probe.state_dict().items()}
    with atomic_directory(path) as partial:
        safetensors.torch.save_file(weights, partial / WEIGHTS)
        content = ProbeRecord(vocabulary=vocabulary, record=record, weights=FileChecksum.of(partial / WEIGHTS))
        write_json(partial / RECORD, {"format": FORMAT, "version": VERSION, **asdict(content)})


@dataclass(frozen=True)
class SavedProbe:
    """A trained probe that was read from its directory."""

    path: Path
    content: ProbeRecord

    def settings_of(self, task: Task[Any, Any]) -> TrainingSettings:
        """The hyper-parameters of its training."""
        return convert(self.content.record["settings"], type(task.published), where=str(self.path / RECORD))

    def rebuild(self, task: Task[Any, Any], sources: InputSources) -> Probe[Any, Any]:
        """The probe with its trained weights, reading from `sources`, which must be those it was trained on."""
        self.check_sources(sources.describe())
        settings = self.settings_of(task)
        weights_path = self.path / WEIGHTS
        self.content.weights.check_whole(weights_path)
        with reading(weights_path):
            probe = task.model(inputs=ProbeInputs(sources, settings), settings=settings, **self.content.vocabulary)
            weights = safetensors.torch.load_file(weights_path)
            check_finite(weights)
            probe.load_state_dict(weights)
        return probe

    def check_facts(self, facts: Mapping[str, Any]) -> None:
        """Raise an `InputError` unless it was trained with the task, settings, data and sources of a run's `facts`."""
        if differing := [name for name in GIVEN if self.content.record[name] != facts[name]]:
            raise InputError(
                f"{self.path} was trained with other {', '.join(differing)} than this run has: choose another "
                "directory for --save, or remove it"
            )
        self.check_sources(facts)

    def check_sources(self, described: Mapping[str, Any]) -> None:
        """Raise an `InputError` unless `features` and `vectors`, as described, are those of the training."""
        for name, identity in (("features", encoder_identity), ("vectors", itemgetter("fingerprint"))):
            trained, given = self.content.record[name], described[name]
            if trained is not None and identity(trained) != identity(given):
                raise InputError(f"{self.path} was trained on other {name} than those given: {identity(trained)}")


def read_probe(path: Path) -> SavedProbe:
    """Read a probe directory; raises `InputError` when it is missing, incomplete or foreign."""
    return SavedProbe(path, read_record(path / RECORD, ProbeRecord, format=FORMAT, version=VERSION))
