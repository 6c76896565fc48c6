"""Lines of results: what does a run of a probe record, and which runs belong together
when they are read again?
"""

import fcntl
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from downstream.inputs.mixing import AS_THEY_ARE
from downstream.results.line import ResultLine, joined, of_row
from downstream.settings import SMALL_MIX_RATE
from elmoc.errors import InputError, reading
from elmoc.files.text import read_lines

Facts = dict[str, Any]
# Facts of a feature file in which layer states of one model, dumped in one way, agree.
OF_MODEL = ("model", "word_vectors", "layers", "carry_state", "pooling")
# A file of another tool names no model.
OF_FILE = ("file", "file_size", "file_time")
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
        facts = [self.place, self.metric, self.fingerprints, self.reader, settings]
        return _identity(facts)

    @property
    def state_settings(self) -> Facts:
        """The settings of layer states that differ from the preset's."""
        usual = dict(STATE_SETTINGS)
        if self.preset == "small":
            usual["mix_rate"] = SMALL_MIX_RATE
        given = self.settings
        return {name: given[name] for name in usual if given[name] != usual[name]}

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
                own = [result.inputs, result.encoder, result.word_vectors]
                key = _identity([result.comparable, own])
                for row, seed in enumerate(result.seeds):
                    runs.setdefault(key, {})[seed] = of_row(result, row)
    if not runs:
        raise InputError(
            f"there are no results in {', '.join(map(str, paths))}: "
            "give files that --results wrote"
        )
    # In the order of the seeds.
    alike = [dict(sorted(of_seeds.items())) for of_seeds in runs.values()]
    return [joined(list(of_seeds.values())) for of_seeds in alike]


def without_state_settings(settings: Mapping[str, Any]) -> Facts:
    """Settings without those of layer states, which may differ between compared
    results.
    """
    return {name: settings[name] for name in settings if name not in STATE_SETTINGS}


def encoder_facts(features: Mapping[str, Any]) -> Facts:
    """Facts that tell layer states from others, of what lines say about them."""
    names = OF_MODEL if "model" in features else OF_FILE
    # Of options that are off, some files say nothing.
    return {name: features[name] for name in names if features.get(name)}


def encoder_identity(features: Mapping[str, Any]) -> str:
    """Equal for what lines say about layer states of the same model."""
    return _identity(encoder_facts(features))


def _identity(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
