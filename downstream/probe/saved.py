"""Saved probes: how is a trained probe kept, and how is it read again?

It is a directory: `probe.json` holds a `ProbeRecord`, and `probe.safetensors` the
weights. The word vectors and the encoder that the probe reads are named by fingerprint,
not copied.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from safetensors.torch import save_file
from torch.nn import Module

from downstream.results.records import Facts, Result, of_row
from elmoc.errors import reading
from elmoc.files.checksums import FileChecksum
from elmoc.files.records import read_record, write_record
from elmoc.files.writing import atomic_directory
from elmoc.weights import contiguous

FORMAT = "elmoc-probe"
FORMAT_VERSION = 8
RECORD = "probe.json"
WEIGHTS = "probe.safetensors"


@dataclass(frozen=True, kw_only=True)
class ProbeRecord:
    """What is in `probe.json`.

    vocabulary: what the task's model has to know of the training data.
    labels: label → its number in the training data.
    result: of the training, with one seed and without counts of items.
    checksums: of the file of weights, by name.
    """

    vocabulary: Facts
    labels: dict[str, int]
    result: Result
    checksums: dict[str, FileChecksum]


def save_probe(
    path: Path, probe: Module, vocabulary: Facts, labels: dict[str, int], result: Result
) -> None:
    """Write a probe's directory; `result` is that of its training."""
    with atomic_directory(path) as partial:
        save_file(contiguous(probe.state_dict()), partial / WEIGHTS)
        record = ProbeRecord(
            vocabulary=vocabulary,
            labels=labels,
            # Counts of many items would make the record larger than what is read.
            result=replace(result, counts=[[]]),
            # Damaged weights may still be read: only their numbers would be wrong.
            checksums={WEIGHTS: FileChecksum.of(partial / WEIGHTS)},
        )
        write_record(partial / RECORD, record, format=FORMAT, version=FORMAT_VERSION)


def read_probe(path: Path) -> ProbeRecord:
    """Read the record of a probe's directory.

    Raises:
        InputError: it is missing, damaged or foreign.
    """
    with reading(path / RECORD):
        record = read_record(
            path / RECORD, ProbeRecord, format=FORMAT, version=FORMAT_VERSION
        )
        # In a damaged record, lists with an element for each seed may be empty.
        return replace(record, result=of_row(record.result, 0))
