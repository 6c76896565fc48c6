"""Saved probes: how is a trained probe kept, and how is it read again?

A saved probe is a directory. `probe.json` holds a `ProbeRecord`, and
`probe.safetensors` the weights. The word vectors and features that the probe reads are
named by fingerprint, not copied.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch

from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sources import InputSources
from downstream.probe.task import Probe, Task
from downstream.results.line import ResultLine
from downstream.results.records import encoder_identity
from downstream.settings import TrainingSettings
from elmoc.errors import InputError, reading
from elmoc.files.checksums import FileChecksum
from elmoc.files.records import read_record, write_record
from elmoc.files.writing import atomic_directory
from elmoc.settings import convert
from elmoc.weights import contiguous, read_tensors

FORMAT = "elmoc-probe"
FORMAT_VERSION = 5
RECORD = "probe.json"
WEIGHTS = "probe.safetensors"
# Facts of a line of results that have to be the same for a run to go on with a probe.
_GIVEN = ("task", "inputs", "split", "settings", "reader", "fingerprints")


@dataclass(frozen=True, kw_only=True)
class ProbeRecord:
    """What is in `probe.json`.

    vocabulary: what the task's model has to know of the training data.
    record: the line of results of its training, of one seed.
    weights: the checksum of the file of weights.
    """

    vocabulary: dict[str, Any]
    record: ResultLine
    weights: FileChecksum


def save_probe(
    path: Path, probe: Probe[Any, Any], vocabulary: dict[str, Any], line: ResultLine
) -> None:
    """Write a probe's directory; `line` is its line of results, of one seed."""
    with atomic_directory(path) as partial:
        safetensors.torch.save_file(contiguous(probe.state_dict()), partial / WEIGHTS)
        # Damaged weights may still be read: only their numbers would be wrong.
        checksum = FileChecksum.of(partial / WEIGHTS)
        content = ProbeRecord(vocabulary=vocabulary, record=line, weights=checksum)
        write_record(partial / RECORD, content, format=FORMAT, version=FORMAT_VERSION)


@dataclass(frozen=True)
class SavedProbe:
    """A trained probe that was read from its directory.

    path: of the directory.
    content: of its `probe.json`.
    """

    path: Path
    content: ProbeRecord

    @property
    def line(self) -> ResultLine:
        """The line of results of its training."""
        return self.content.record

    def settings_of(self, task: Task[Any, Any]) -> TrainingSettings:
        """The hyper-parameters of its training."""
        where = str(self.path / RECORD)
        return convert(self.line.settings, type(task.published), where=where)

    def rebuild(self, task: Task[Any, Any], sources: InputSources) -> Probe[Any, Any]:
        """The probe with its trained weights, reading from `sources`.

        Raises:
            InputError: other sources than those of its training, or damaged weights.
        """
        self.check_sources(sources.describe())
        settings = self.settings_of(task)
        weights_path = self.path / WEIGHTS
        self.content.weights.check_whole(weights_path)
        with reading(weights_path):
            inputs = ProbeInputs(sources, settings)
            # Label sets of the training: the order of labels is that of the weights.
            vocabulary = self.content.vocabulary
            probe = task.model(inputs=inputs, settings=settings, **vocabulary)
            probe.load_state_dict(read_tensors(weights_path)[1])
        return probe

    def check_facts(self, facts: Mapping[str, Any]) -> None:
        """Raise an `InputError` unless it was trained with the task, settings, data and
        sources of a run's `facts`.
        """
        differing = [name for name in _GIVEN if getattr(self.line, name) != facts[name]]
        if differing:
            raise InputError(
                f"{self.path} was trained with other {', '.join(differing)} than this "
                "run has: choose another directory for --save, or remove it"
            )
        self.check_sources(facts)

    def check_sources(self, described: Mapping[str, Any]) -> None:
        """Raise an `InputError` unless `features` and `vectors`, as described, are the
        same as in the training.
        """
        # A probe on word vectors alone does not care which encoder is given, and so on.
        features = self.line.features
        if features is not None:
            given = encoder_identity(described["features"])
            self._check_source("features", encoder_identity(features), given)
        vectors = self.line.vectors
        if vectors is not None:
            given = described["vectors"]["fingerprint"]
            self._check_source("vectors", str(vectors.get("fingerprint")), given)

    def _check_source(self, name: str, trained: str, given: str) -> None:
        if trained != given:
            raise InputError(
                f"{self.path} was trained on other {name} than those given: {trained}"
            )


def read_probe(path: Path) -> SavedProbe:
    """Read the record of a probe directory.

    Raises:
        InputError: it is missing, incomplete, damaged or foreign.
    """
    record = read_record(
        path / RECORD, ProbeRecord, format=FORMAT, version=FORMAT_VERSION
    )
    # Lines of a results file have several seeds, a probe has one.
    if not record.record.is_of_one_seed:
        raise InputError(f"{path / RECORD} is damaged: it must be of one seed")
    return SavedProbe(path, record)
