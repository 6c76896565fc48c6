"""Checkpoints: how the state of a run is written and read again, unchanged.

A checkpoint is a dictionary of tensors and plain values, as `torch.save` writes it: those of `TrainState.to_dict`, and

data: the fingerprints of corpus and tables.
started_from: the training record of the model that the run began with by `--init-from`, if it did.
metrics_bytes: how much of `metrics.jsonl` belongs to it.
unlogged: what the updates since the last line of `metrics.jsonl` did, in each direction (see `DirectionStep`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from elmoc.errors import reading
from elmoc.files.checksums import check_archive
from elmoc.files.records import check_version
from elmoc.files.writing import atomic_path

FORMAT = "elmoc-checkpoint"
VERSION = 3


def write_checkpoint(path: Path, values: Mapping[str, Any]) -> None:
    """Write a checkpoint atomically."""
    with atomic_path(path) as partial:
        torch.save({"format": FORMAT, "version": VERSION, **values}, partial)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint onto the CPU and compare its checksums; nothing but tensors and plain values is unpickled."""
    with reading(path):
        check_archive(path)
        values = torch.load(path, map_location="cpu", weights_only=True)
        check_version(path, values, format=FORMAT, version=VERSION)
    assert isinstance(values, dict)
    return values
