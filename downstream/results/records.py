"""Lines of results: what does a run of a probe record, and which runs belong together
when they are read again?
"""

import fcntl
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from downstream.inputs.mixing import AS_THEY_ARE
from downstream.printing import counted
from downstream.results.line import ResultLine, format_score, joined, of_row
from downstream.settings import SMALL_MIX_RATE
from elmoc.errors import InputError, reading
from elmoc.files.text import read_lines

Facts = dict[str, Any]

# Settings of layer states belong to the encoder: rows that differ in them share the
# baseline, word vectors alone.
STATE_SETTINGS: Facts = asdict(AS_THEY_ARE)


@dataclass(frozen=True, kw_only=True)
class Result(ResultLine):
    """A line of results that is compared with others.

    compared_as: equal for results of a suite that are compared, though each kind of
        inputs has settings of its own.
    """

    compared_as: str | None = None

    @property
    def place(self) -> tuple[str, str, str]:
        """Task, data set and split."""
        return self.task, self.dataset, self.split

    @property
    def comparable(self) -> str:
        """Equal for results whose difference is due to their inputs alone: task, data,
        metric and settings agree.

        Files are compared by their contents, in their order, as runs may have found
        them in different folders.
        """
        # Suites tune settings for each kind of inputs.
        settings = self.compared_as or without_state_settings(self.settings)
        return _identity(
            [*self.place, self.metric, self.fingerprints, self.reader, settings]
        )

    @property
    def state_settings(self) -> Facts:
        """The settings of layer states that differ from the preset's."""
        usual = dict(STATE_SETTINGS)
        if self.preset == "small":
            usual["mix_rate"] = SMALL_MIX_RATE
        given = {name: self.settings[name] for name in usual}
        return {name: each for name, each in given.items() if each != usual[name]}

    @property
    def encoder(self) -> str | None:
        """Equal for layer states of the same model that are given to probes in the same
        way; None without any.
        """
        if self.features is None:
            return None
        return encoder_identity(self.features) + _identity(self.state_settings)

    @property
    def word_vectors(self) -> str | None:
        """The fingerprint of the word vectors; None without any."""
        return None if self.vectors is None else str(self.vectors["fingerprint"])


def append_result(path: Path, record: Mapping[str, Any]) -> None:
    """Append one JSON line while the file is locked: several runs may share it."""
    with open(path, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(record, ensure_ascii=False) + "\n")


def read_results(paths: Iterable[Path]) -> list[Result]:
    """The results of all lines of the files, in the order in which they come first.

    Lines that agree in task, data, settings and inputs are one result with the seeds of
    all of them. Where several have the same seed, the last one counts.

    Raises:
        InputError: a line that cannot be read, or files without lines.
    """
    decoder = msgspec.json.Decoder(Result)
    # What runs share → seed → the result of the run.
    runs: dict[str, dict[int, Result]] = {}
    for path in paths:
        for number, line in enumerate(read_lines(path), 1):
            with reading(f"{path}, line {number}"):
                result = decoder.decode(line)
                facts = [result.comparable, result.inputs, result.encoder]
                key = _identity([*facts, result.word_vectors])
                alike = runs.setdefault(key, {})
                for row, seed in enumerate(result.seeds):
                    alike[seed] = of_row(result, row)
    if not runs:
        raise InputError(
            f"there are no results in {', '.join(map(str, paths))}: "
            "give files that --results wrote"
        )
    pooled = []
    for alike in runs.values():
        pooled.append(joined([alike[seed] for seed in sorted(alike)]))
    return pooled


def without_state_settings(settings: Mapping[str, Any]) -> Facts:
    """Settings without those of layer states, which may differ between compared
    results.
    """
    return {name: settings[name] for name in settings if name not in STATE_SETTINGS}


def encoder_identity(features: Mapping[str, Any]) -> str:
    """Equal for what lines say about layer states of the same model.

    A file of another tool names no model: it is known by path, size and time.
    """
    if "model" not in features:
        known = [
            each for each in ("file", "file_size", "file_time") if each in features
        ]
        return " ".join(str(features[name]) for name in known)
    # Layers differ between dumps of one model, pooling between those of subwords.
    names = ("model", "word_vectors", "layers", "pooling")
    facts = [features.get(name) for name in names]
    return _identity([*facts, bool(features.get("carry_state"))])


def summary(records: Sequence[Mapping[str, Any]]) -> str:
    """The last lines that a run prints: one a kind of inputs, each with its gain over
    word vectors alone.

    A gain is that over word vectors with the same data and settings, since saved probes
    may have others.
    """
    first = records[0]
    lines = [f"{first['task']}: {first['metric']} on {first['split']}"]
    # Data and settings → the mean of word vectors alone.
    baselines: dict[str, float] = {}
    for record in records:
        if record["inputs"] == "vectors":
            baselines.setdefault(_compared(record), record["mean"])
    for record in records:
        score = format_score(record["mean"], record["deviation"])
        seeds = counted(len(record["seeds"]), "seed")
        line = f"  {record['inputs']:9} {score:14}  {seeds:8}"
        baseline = baselines.get(_compared(record))
        if baseline is not None and record["inputs"] != "vectors":
            line += f"  gain {record['mean'] - baseline:+.2f}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def _compared(record: Mapping[str, Any]) -> str:
    settings = without_state_settings(record["settings"])
    return _identity([record["fingerprints"], record["reader"], settings])


def _identity(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
