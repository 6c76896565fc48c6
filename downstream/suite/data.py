"""Data of a suite: what its probes read, their sentences as text, and the feature files made of them."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from downstream.inputs.feature_states import FeatureStates
from downstream.probe.splits import read_split
from downstream.results.records import encoder_identity
from downstream.suite.plan import SuiteProbe
from elmoc.errors import InputError
from elmoc.files.checksums import fingerprint
from elmoc.files.locks import locked
from elmoc.files.text import open_text
from elmoc.files.writing import atomic_path, refuse_existing
from elmoc.model import ElmoC
from elmoc.process import run_child


@dataclass(frozen=True)
class ProbeData:
    """The sentences that a probe looks up.

    sentences     split → text of each, once, words joined by a blank
    words         how many a probe reads in an epoch of training
    fingerprints  split → those of its files
    """

    sentences: dict[str, list[str]]
    words: int
    fingerprints: dict[str, list[str]]

    @property
    def lines(self) -> list[str]:
        """The sentences of all splits, each once, as lines of a file."""
        return list(dict.fromkeys(f"{sentence}\n" for split in self.sentences.values() for sentence in split))

    @property
    def text(self) -> bytes:
        """The contents of such a file."""
        return "".join(self.lines).encode("utf-8")


def read_data(probe: SuiteProbe) -> ProbeData:
    """Read the files of a probe, and print a line about each split; raises `InputError` with file and line."""
    fractions = {"train": probe.settings("both").train_fraction}
    splits = [
        read_split(probe.task, split, files, probe.reader, fraction=fractions.get(split, 1.0))
        for split, files in probe.files.items()
    ]
    return ProbeData(
        sentences={
            split.name: list(dict.fromkeys(" ".join(sentence.words) for sentence in split.sentences))
            for split in splits
        },
        words=sum(splits[0].lengths),
        fingerprints={split.name: split.fingerprints for split in splits},
    )


def suite_identity(probes: Sequence[SuiteProbe], data: Mapping[str, ProbeData], vectors: str) -> str:
    """Equal for suites whose results can stand in one table, of whatever encoders.

    They have the same probes, data by content, settings and seeds, and word vectors of the identity `vectors`.
    """
    parts = [
        [
            probe.identity,
            probe.name,
            asdict(probe.reader),
            probe.seeds,
            data[probe.file_name].fingerprints,
        ]
        for probe in probes
    ]
    return fingerprint(json.dumps([vectors, parts], sort_keys=True).encode())


def write_sentences(path: Path, probes: Sequence[SuiteProbe]) -> int:
    """Write the sentences of all probes, each once, one a line, and compressed where `path` ends in `.gz`.

    Returns how many there are. Raises `InputError` where the file exists, and as `read_data` does.
    """
    with locked(path):
        refuse_existing(path)
        lines = dict.fromkeys(line for probe in probes for line in read_data(probe).lines)
        with open_text(path) as file:
            file.writelines(lines)
    return len(lines)


def describe_model(model: Path, *, vectors: str | None, pooling: str | None, device: str) -> dict[str, str]:
    """What tells the features of a model from others; raises `InputError` where it cannot be used in this way."""
    return ElmoC.from_pretrained(
        model,
        vectors=vectors,
        device=device,
        precision="auto",  # the default of the dump
        pooling=pooling,
    ).describe()


def dump_features(
    model: Path,
    data: Mapping[str, ProbeData],
    folder: Path,
    *,
    described: Mapping[str, str],
    vectors: str | None,
    pooling: str | None,
    threads: int,
    device: str,
) -> dict[str, Path]:
    """A feature file for each probe, by its name; what is there already stays, and a dump that was killed goes on.

    Those of another encoder, release, precision or pooling, by what `describe_model` has `described`, are in another
    folder. Raises `InputError` where `elmoc dump-features`, which says why, fails.
    """
    files = {}
    folder /= fingerprint(*(each.encode() for each in described.values()))[:8]
    for name, each in data.items():
        text = folder / f"{name}.{fingerprint(each.text)[:8]}.txt"
        if not text.exists():
            with atomic_path(text) as partial:
                partial.write_bytes(each.text)
        files[name] = text.with_suffix(".h5")
    texts = [file.with_suffix(".txt") for file in files.values()]
    command = ["dump-features", str(model), *map(str, texts), "--output-dir", str(folder), "--dtype", "float16"]
    command += ["--device", device, "--resume", *(["--vectors", vectors] if vectors else [])]
    command += ["--pooling", pooling] if pooling else []
    print(f"features of {model}:", flush=True)
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    if run_child([sys.executable, "-m", "elmoc", *command], environment=environment):
        raise InputError(f"the features of {model} were not made (see above): correct that, and run the suite again")
    return files


def describe_features(file: Path) -> tuple[dict[str, Any], str]:
    """What a feature file says of its encoder, and an identity by which the encoder's results are known again."""
    described = FeatureStates(file, sentences=[]).describe()
    return described, encoder_identity(described)
