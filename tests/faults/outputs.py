"""Outputs: what a command leaves, read as its readers do, and compared with what an undisturbed run leaves."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

from downstream.probe.saved_probe import read_probe
from downstream.results.reading import read_results
from elmoc import FeatureFile
from elmoc.corpus import Corpus
from elmoc.model_directory import read_model_directory
from elmoc.word_vectors.table import VectorTable
from pretrain.run.directory import RunDirectory, read_checkpoint, read_metrics

CLOCK = ("seconds", "longest_evaluation", "words_per_second", "examples_per_second", "metrics_bytes")
"""What differs between two runs that do the same."""


@dataclass(frozen=True)
class Output:
    """A file or directory that a command makes.

    name: its path in the folder of the command.
    read: raises an `InputError` unless it is whole; a file without a reader is whole whenever it is there.
    in_steps: it is whole at other times than before and after the command, too.
    """

    name: str
    read: Callable[[Path], object] = lambda path: None
    in_steps: bool = False


def read_corpus(path: Path) -> None:
    """Read all of a corpus directory."""
    corpus = Corpus(path)
    assert len(corpus.lexicon) == len(corpus.counts)
    for shard in corpus.train + corpus.held_out:
        corpus.read_shard(shard)
        corpus.read_documents(shard)


def read_table(path: Path) -> None:
    """Read the vector table `new` of the corpus whose `vectors` folder this is, and compare it with its checksums."""
    table = VectorTable(Corpus(path.parent), "new")
    assert table.transform.boundary is not None
    for file, checksum in table.checksums.items():
        checksum.check_whole(file, advice="")


def read_features(path: Path) -> None:
    """Read the first sentence of a feature file."""
    with FeatureFile(path) as features:
        assert features[0].size


def read_checkpoints(path: Path) -> None:
    """Read all checkpoints of a run directory."""
    for checkpoint in RunDirectory(path).checkpoint_paths():
        read_checkpoint(checkpoint)


def read_log(path: Path) -> None:
    """Read the metrics of the run directory that this file is in."""
    read_metrics(path.parent, "train")


def read_probes(path: Path) -> None:
    """Read the saved probes in a folder that say that they are whole."""
    for description in path.glob("*/probe.json"):
        read_probe(description.parent)


def read_result_lines(path: Path) -> None:
    """Read a file of results, which may be empty."""
    if path.stat().st_size:
        read_results([path])


def read_json_lines(path: Path) -> None:
    """Read lines of JSON, of which a last one without its end may be broken off."""
    for line in path.read_bytes().split(b"\n")[:-1]:
        json.loads(line)


def read_model(path: Path) -> None:
    """Read a model directory."""
    read_model_directory(path)


def contents(path: Path) -> Any:
    """What is in a file or directory, comparable by `==`; None where there is nothing.

    Clocks and hidden files, which nobody reads, are left out, and of several checkpoints all but the last: where a run
    was stopped it has saved, too. A feature file is what HDF5 finds in it: one that was gone on with has other bytes.
    """
    if path.is_dir() and path.name == "checkpoints":
        checkpoints = sorted(path.glob("*.pt"))
        return [len(checkpoints), *map(contents, checkpoints[-1:])]
    if path.is_dir():
        return {each.name: contents(each) for each in sorted(path.iterdir()) if not each.name.startswith(".")}
    if not path.exists():
        return None
    if path.suffix == ".jsonl":
        return whole_lines(path)
    if path.name == "probe.json":
        return without_clock(json.loads(path.read_text()))
    if path.suffix == ".pt":
        return plain(without_clock(torch.load(path, weights_only=True)))
    if path.suffix == ".h5":
        return datasets(path)
    return digest(path.read_bytes())


def datasets(path: Path) -> tuple[Any, ...]:
    """The attributes of an HDF5 file, and its datasets in their order, each with its type, shape and numbers."""
    found: list[Any] = []
    with h5py.File(path) as file:
        found.append({name: str(value) for name, value in file.attrs.items()})
        for name in file:
            values = np.asarray(file[name][()])
            data = values.tolist() if values.dtype.hasobject else digest(values.tobytes())
            found.append((name, str(values.dtype), values.shape, data))
    return tuple(found)  # no list, which would be that of a log: one with less in it is not whole


def whole_lines(path: Path) -> list[Any]:
    """The JSON lines of a file, apart from a last one that breaks off."""
    lines = []
    for line in path.read_text().splitlines():
        try:
            lines.append(without_clock(json.loads(line)))
        except json.JSONDecodeError:
            continue
    return lines


def without_clock(value: Any) -> Any:
    """A value without the fields of dictionaries that depend on the clock."""
    if isinstance(value, dict):
        return {key: without_clock(each) for key, each in value.items() if key not in CLOCK}
    return [without_clock(each) for each in value] if isinstance(value, list | tuple) else value


def plain(value: Any) -> Any:
    """A value with its tensors replaced by their digests."""
    if isinstance(value, torch.Tensor):
        return (str(value.dtype), tuple(value.shape), digest(value.contiguous().numpy().tobytes()))
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def digest(data: bytes) -> str:
    """A hash of bytes."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def is_beginning(some: Any, whole: Any) -> bool:
    """Whether the lines of one log are the first of another's."""
    return isinstance(some, list) and isinstance(whole, list) and some == whole[: len(some)]


def differing(found: dict[str, Any], expected: dict[str, Any], place: str = "") -> str:
    """Where two contents differ."""
    names = []
    for name in sorted(found.keys() | expected.keys()):
        one, other = found.get(name), expected.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            names.append(differing(one, other, f"{place}{name}/"))
        elif one != other:
            names.append(f"{place}{name}{' is missing' if one is None else ' is new' if other is None else ''}")
    return ", ".join(filter(None, names))


def same_lines(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Whether contents are equal when lines of results that stand there twice count once."""

    def once(values: dict[str, Any]) -> dict[str, Any]:
        return {
            name: {json.dumps(line, sort_keys=True) for line in value} if isinstance(value, list) else value
            for name, value in values.items()
        }

    return once(found) == once(expected)
