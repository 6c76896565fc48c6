"""Records of runs: lines of results, their means, the file they are appended to, and identities of their inputs."""

import errno
import fcntl
import json
import os
import reprlib
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from downstream.inputs.kinds import INPUT_KINDS
from downstream.inputs.state_settings import AS_THEY_ARE, SMALL_MIX_RATE
from elmoc.errors import InputError, shortened
from elmoc.files.records import convert
from elmoc.settings import counted, setting

Name = Annotated[str, Meta(min_length=1)]
Number = Annotated[float, Meta(ge=-1e15, le=1e15)]
Value = bool | int | float | str | None
Facts = dict[str, Value | list[Value | list[Value]]]
"""What is known of something, by name."""

STATE_SETTINGS: Facts = asdict(AS_THEY_ARE)
"""Settings of layer states: they belong to what is compared, as the encoder does."""
LATER_SETTINGS: Facts = {"train_fraction": 1.0, **STATE_SETTINGS, "match_vectors": False}
"""Settings that lines of earlier versions lack, at the values with which those were run."""


@dataclass(frozen=True, kw_only=True)
class ResultLine:
    """The scores of one task, one set of data and one kind of inputs, with a run for each seed.

    Its fields are those of a line of results that are read again.
    """

    task: Name
    dataset: Name
    inputs: str = setting(choices=tuple(INPUT_KINDS))
    metric: Name
    split: Name
    unit: Name
    item: Name
    preset: Name
    data: dict[str, dict[str, int]]
    """Split → file → number of sentences."""
    fingerprints: dict[str, list[str]]
    """Split → the hashes of the contents of its files."""
    reader: Facts
    """The options with which the files were read."""
    settings: Facts
    features: Facts | None
    """What is known of the encoder; None where the inputs are word vectors alone."""
    vectors: Facts | None
    """What is known of the word vectors; None where the inputs are features alone."""
    seeds: Annotated[list[int], Meta(min_length=1)]
    scores: list[Number]
    """The metric of each seed, in percent."""
    figures: dict[str, list[Number]]
    """All metrics of each seed."""
    items: int = setting(least=1)
    counts: list[list[list[Number]]]
    """[seeds, N, K]: what the metric counts in each of the N items of the test set."""
    seconds: list[Number]
    """Of training."""
    examples_per_second: list[Number]
    mixes: list[list[Number] | None] = field(default_factory=list)
    """[seeds, layers that are mixed + 1]: the weights of the scalar mix, which sum to 1, and its scale γ; None without
    layer states. Lines of earlier versions lack them."""
    compared_as: Name | None = None
    """Equal for results that are compared though settings differ, each kind of inputs having its own best."""
    compared_before_as: Name | None = None
    """What `compared_as` is in lines of earlier versions, which tell suites by less than all settings."""

    @property
    def compared_settings(self) -> Facts:
        """The settings that results to be compared share, where their inputs are of one kind."""
        return without_state_settings(self.settings)

    @property
    def state_settings(self) -> Facts:
        """The settings of layer states that are not those of the preset."""
        usual = STATE_SETTINGS | ({"mix_rate": SMALL_MIX_RATE} if self.preset == "small" else {})
        return {name: self.settings[name] for name, value in usual.items() if self.settings[name] != value}

    @property
    def train_fraction(self) -> float:
        """The part of the training data that was trained on."""
        fraction = self.settings["train_fraction"]
        assert isinstance(fraction, (int, float)), "parse_line has checked it"
        return fraction


Line = TypeVar("Line", bound=ResultLine)


def parse_line(value: Any, kind: type[Line], *, where: str, advice: str, prefix: str = "") -> Line:
    """A line of results from its JSON, of which other fields are ignored; arguments are those of `convert`.

    Raises `InputError` for fields that are missing, of another type, or do not go together.
    """
    if isinstance(value, dict):
        value = {each.name: value[each.name] for each in fields(kind) if each.name in value}
        if isinstance(value.get("settings"), dict):
            value["settings"] = LATER_SETTINGS | value["settings"]
    line = convert(value, kind, where=where, advice=advice, prefix=prefix)
    kind_of_inputs, runs = INPUT_KINDS[line.inputs], len(line.seeds)
    per_seed: dict[str, Sequence[Any]] = {
        "scores": line.scores,
        "seconds": line.seconds,
        "examples_per_second": line.examples_per_second,
        **({"mixes": line.mixes} if line.mixes else {}),
    }
    unequal = [shortened(name) for name, values in (per_seed | line.figures).items() if len(values) != runs]
    problems = (
        ((line.vectors is None) == kind_of_inputs.words, f"vectors does not go with the inputs {line.inputs}"),
        ((line.features is None) == kind_of_inputs.states, f"features does not go with the inputs {line.inputs}"),
        (line.vectors is not None and "fingerprint" not in line.vectors, "vectors has no fingerprint"),
        (line.split not in line.data, f"data has no {shortened(line.split)}"),
        (line.fingerprints.keys() != line.data.keys(), "fingerprints does not have the splits of data"),
        (not _is_fraction(line.settings["train_fraction"]), "settings.train_fraction must be above 0 and at most 1"),
        (len(set(line.seeds)) != runs, f"seeds has a number twice in {reprlib.repr(line.seeds)}"),
        (
            any((mix is None) == kind_of_inputs.states for mix in line.mixes),
            "mixes has one without layer states, or lacks one",
        ),
        (any(mix is not None and len(mix) < 2 for mix in line.mixes), "mixes has not a layer and a scale"),
        (bool(unequal), f"{', '.join(unequal[:1])} has not one number for each of {counted(runs, 'seed')}"),
        (
            not _is_regular(line),
            f"counts has not as many numbers for each of {counted(line.items, 'item')} and {counted(runs, 'seed')}",
        ),
    )
    for found, problem in problems:
        if found:
            raise InputError(f"{where}: {prefix}{problem}: {advice}")
    return line


def _is_fraction(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 < value <= 1


def _is_regular(line: ResultLine) -> bool:
    """Whether the counts have the shape [seeds, items, K], with K from 1."""
    items = [len(one) for one in line.counts]
    columns = {len(counts) for one in line.counts for counts in one}
    return items == [line.items] * len(line.seeds) and len(columns) == 1 and 0 not in columns


def without_state_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings, but for those of layer states, which belong to what is compared."""
    return {name: value for name, value in settings.items() if name not in STATE_SETTINGS}


def mean_and_deviation(scores: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation (n − 1) over seeds; a single seed has no deviation."""
    return statistics.fmean(scores), statistics.stdev(scores) if len(scores) > 1 else None


def format_score(mean: float, deviation: float | None) -> str:
    """`52.31 ± 0.40`, or the mean alone."""
    return f"{mean:.2f}" if deviation is None else f"{mean:.2f} ± {deviation:.2f}"


def percent(fraction: float) -> str:
    """`25 %`, `0.5 %`."""
    return f"{100 * fraction:.4g} %"


def open_results(path: Path) -> None:
    """Make the file (and its folder) when it is missing, so that a run finds out at once if it cannot be written.

    Raises `InputError` for a name that ends in .gz: lines are added as plain text, which would not be read again.
    """
    if path.suffix == ".gz":
        raise InputError(f"--results {path} is not possible: lines are added as plain text, give a name without .gz")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        raise InputError(f"--results {path} is {'a directory' if path.is_dir() else 'no ordinary file'}: name a file")
    with open(path, "ab"):
        pass


def append_result(path: Path, record: dict[str, Any]) -> None:
    """Append one JSON line, in a single write while the file is locked: several runs may share it."""
    line = (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8")
    with open(path, "a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = file.seek(0, os.SEEK_END)
        if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
            line = b"\n" + line  # another run broke off in the middle of a line
        try:
            if file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            os.fsync(file.fileno())
        except OSError:
            file.truncate(end)  # nothing is left of a line that is not whole
            raise


def encoder_identity(features: dict[str, Any]) -> str:
    """Equal for what lines say about layer states of the same model; foreign files are known by path, size and time."""
    if "model_fingerprint" in features:  # of a peer
        return str(features["model_fingerprint"])
    if "model" not in features:
        return " ".join(str(features[name]) for name in ("file", "file_size", "file_time") if name in features)
    parts = [features.get(name) for name in ("model", "word_vectors", "layers")]
    if features.get("carry_state"):  # a sentence's states then depend on those before it
        parts.append("carry_state")
    if features.get("pooling", "first") != "first":  # files of earlier versions have the first subword's
        parts.append(features["pooling"])
    return json.dumps(parts, sort_keys=True, ensure_ascii=False)


def layer_names(features: dict[str, Any]) -> list[str]:
    """The layers that lines say a feature file holds; a foreign file may have anything under that name."""
    layers = features.get("layers") or []
    return list(map(str, layers if isinstance(layers, list) else [layers]))


def word_vectors_identity(vectors: dict[str, Any]) -> str:
    """Equal for what lines say about the same word vectors."""
    return str(vectors["fingerprint"])


def summary(records: Sequence[dict[str, Any]]) -> str:
    """The last lines that a run prints: one a kind of inputs, each with its gain over word vectors alone.

    A gain is that over word vectors with the same data and settings, since saved probes may have others.
    The number of seeds stands above them, or on each of them where they differ in it.
    """
    first = records[0]
    title = f"{first['task']}: {first['metric']} on {first['split']}"
    seeds = [counted(len(record["seeds"]), "seed") for record in records]
    differ = len(set(seeds)) > 1
    lines = [title if differ else f"{title}, {seeds[0]}"]
    baselines = [record for record in records if record["inputs"] == "vectors"]
    for record, number in zip(records, seeds, strict=True):
        line = f"  {record['inputs']:9} {format_score(record['mean'], record['deviation']):14}"
        if differ:
            line += f"  {number:8}"
        baseline = next((each for each in baselines if _differ_in_inputs_alone(each, record)), None)
        if baseline is not None and record["inputs"] != "vectors":
            line += f"  gain {record['mean'] - baseline['mean']:+.2f}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def _differ_in_inputs_alone(record: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two records are of the same data and settings, but for those of layer states."""
    first, second = (
        (each["fingerprints"], each["reader"], without_state_settings(each["settings"])) for each in (record, other)
    )
    return first == second
