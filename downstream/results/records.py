"""Records of runs: lines of results, their means, the file they are appended to, and identities of their inputs."""

import fcntl
import json
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmoc.errors import InputError


def mean_and_deviation(scores: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation (n − 1) over seeds; a single seed has no deviation."""
    return statistics.fmean(scores), statistics.stdev(scores) if len(scores) > 1 else None


def format_score(mean: float, deviation: float | None) -> str:
    """`52.31 ± 0.40`, or the mean alone."""
    return f"{mean:.2f}" if deviation is None else f"{mean:.2f} ± {deviation:.2f}"


def open_results(path: Path) -> None:
    """Make the file (and its folder) when it is missing, so that a run finds out at once if it cannot be written.

    Raises `InputError` for a name that ends in .gz: lines are added as plain text, which would not be read again.
    """
    if path.suffix == ".gz":
        raise InputError(f"--results {path} is not possible: lines are added as plain text, give a name without .gz")
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab"):
        pass


def append_result(path: Path, record: dict[str, Any]) -> None:
    """Append one JSON line, in a single write while the file is locked: several runs may share it."""
    line = (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8")
    with open(path, "a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0, os.SEEK_END)
        if file.tell() and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
            line = b"\n" + line  # another run broke off in the middle of a line
        if file.write(line) != len(line):
            raise InputError(f"{path} could not be written, the disk is full: free some space and run it again")
        os.fsync(file.fileno())


def encoder_identity(features: dict[str, Any]) -> str:
    """Equal for what lines say about layer states of the same model; foreign files are known by name."""
    if "model" not in features:
        return str(features.get("file"))
    parts = [features.get(name) for name in ("model", "word_vectors", "layers")]
    return json.dumps(parts, sort_keys=True, ensure_ascii=False)


def word_vectors_identity(vectors: dict[str, Any]) -> str:
    """Equal for what lines say about the same word vectors."""
    return str(vectors["fingerprint"])


def summary(records: Sequence[dict[str, Any]]) -> str:
    """The last lines that a run prints: one a kind of inputs, each with its gain over word vectors alone.

    The number of seeds stands above them, or on each of them where they differ in it.
    """
    first = records[0]
    title = f"{first['task']}: {first['metric']} on {first['split']}"
    seeds = [f"{len(record['seeds'])} seed{'s' if len(record['seeds']) > 1 else ''}" for record in records]
    differ = len(set(seeds)) > 1
    lines = [title if differ else f"{title}, {seeds[0]}"]
    baseline = next((record["mean"] for record in records if record["inputs"] == "vectors"), None)
    for record, number in zip(records, seeds, strict=True):
        line = f"  {record['inputs']:9} {format_score(record['mean'], record['deviation']):14}"
        if differ:
            line += f"  {number:8}"
        if baseline is not None and record["inputs"] != "vectors":
            line += f"  gain {record['mean'] - baseline:+.2f}"
        lines.append(line.rstrip())
    return "\n".join(lines)
