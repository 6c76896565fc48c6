"""Saved probes: how is a trained probe kept, and how is it read again?

A saved probe is a directory. `probe.json` holds a `ProbeRecord`, and
`probe.safetensors` the weights. The word vectors and features that the probe reads are
named by fingerprint, not copied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch

from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sources import InputSources
from downstream.probe.task import Probe, Task
from downstream.results.line import ResultLine, of_row
from downstream.results.records import encoder_identity
from downstream.settings import TrainingSettings
from elmoc.errors import InputError, reading
from elmoc.files.checksums import FileChecksum
from elmoc.files.records import read_record, write_record
from elmoc.files.writing import atomic_directory
from elmoc.settings import convert
from elmoc.weights import contiguous, read_tensors

# A part of a line of results.
Facts = Mapping[str, Any]

FORMAT = "elmoc-probe"
FORMAT_VERSION = 5
RECORD = "probe.json"
WEIGHTS = "probe.safetensors"
# Facts of a line of results that have to be the same where a probe is read again, and
# more of them for a run to go on with it.
_SOURCES = ("features", "vectors")
_OF_TRAINING = ("task", "inputs", "split", "settings", "reader", "fingerprints")


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
    line: the line of results of its training.
    content: of its `probe.json`.
    """

    path: Path
    line: ResultLine
    content: ProbeRecord

    def settings_of(self, task: Task[Any, Any]) -> TrainingSettings:
        """The hyper-parameters of its training."""
        where = str(self.path / RECORD)
        return convert(self.line.settings, type(task.published), where=where)

    def rebuild(self, task: Task[Any, Any], sources: InputSources) -> Probe[Any, Any]:
        """The probe with its trained weights, reading from `sources`.

        Raises:
            InputError: other sources than those of its training, or damaged weights.
        """
        self.check_alike(sources.describe(), _SOURCES)
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

    def check_alike(
        self, given: Facts, names: Sequence[str] = _OF_TRAINING + _SOURCES
    ) -> None:
        """Raise an `InputError` unless facts of its training, by these names, are those
        of a run's line of results.
        """
        trained = _with_identities(vars(self.line))
        now = _with_identities(given)
        differing = [name for name in names if trained[name] != now[name]]
        if differing:
            raise InputError(
                f"{self.path} was trained with other {', '.join(differing)} than those "
                "given (--save takes another directory for them)"
            )


def _with_identities(facts: Facts) -> dict[str, Any]:
    """Facts of a line of results, layer states and word vectors by their identity
    alone.
    """
    features = facts["features"]
    vectors = facts["vectors"]
    return {
        **facts,
        "features": features and encoder_identity(features),
        "vectors": vectors and vectors.get("fingerprint"),
    }


def read_probe(path: Path) -> SavedProbe:
    """Read the record of a probe directory.

    Raises:
        InputError: it is missing, incomplete, damaged or foreign.
    """
    record = path / RECORD
    content = read_record(record, ProbeRecord, format=FORMAT, version=FORMAT_VERSION)
    with reading(record):
        # Lines of a results file have several seeds, a probe has one.
        if of_row(content.record, 0) != content.record:
            raise ValueError("it must be of one seed")
    return SavedProbe(path, content.record, content)
