"""What are the rows of the table called, so that they can be told apart?"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from downstream.results.comparison import Row
from downstream.results.reading import Result
from elmoc.errors import InputError

NONE = "–"


@dataclass(frozen=True)
class NamedRow:
    """A row of the table and its names."""

    row: Row
    dataset: str
    """Data set and split, and in what the row differs from others on them: `wnut17 dev, hidden_size 100`."""
    encoder: str
    word_vectors: str


def name_rows(rows: Sequence[Row], *, given: Mapping[str, str]) -> list[NamedRow]:
    """Name all rows of a table together; `given` maps beginnings of encoders' fingerprints to names for them."""
    encoders = _encoder_names([row.encoder for row in rows if row.encoder is not None], given)
    return [
        NamedRow(
            row,
            ", ".join([f"{row.any.dataset} {row.any.split}", *_variant(row, rows)]),
            NONE if row.encoder is None else encoders[str(row.encoder.encoder)],
            NONE if row.word_vectors is None else _word_vectors(row.word_vectors),
        )
        for row in rows
    ]


def _encoder_names(results: Sequence[Result], given: Mapping[str, str]) -> dict[str, str]:
    """Identity of each encoder → a name that no other one has."""
    origins: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        origins.setdefault(str(result.encoder), []).append(result.features or {})
    fingerprints = {encoder: _fingerprint(of_encoder[0]) for encoder, of_encoder in origins.items()}
    for beginning in given:
        if not any(fingerprint.startswith(beginning) for fingerprint in fingerprints.values()):
            raise InputError(
                f"--encoder {beginning}=…: no encoder here has a fingerprint that begins so; there are "
                f"{', '.join(sorted(set(fingerprints.values()))) or 'none at all'}"
            )
    short = {encoder: _encoder_name(of_encoder, given) for encoder, of_encoder in origins.items()}
    names = list(short.values())
    return {
        encoder: name
        if names.count(name) == 1
        else " ".join([name, _short_fingerprint(origins[encoder][0]), *_layers(origins[encoder][0])])
        for encoder, name in short.items()
    }


def _encoder_name(origins: Sequence[dict[str, Any]], given: Mapping[str, str]) -> str:
    """The name that is given, that of the one file or directory the features are from, or the fingerprint."""
    fingerprint = _fingerprint(origins[0])
    for beginning, name in given.items():
        if fingerprint.startswith(beginning):
            return name
    directories = {Path(str(origin["directory"])) for origin in origins if "directory" in origin}
    names = {(path.parent if path.name == "model" else path).name for path in directories}
    names = names or {Path(str(origin.get("file"))).stem for origin in origins}
    return names.pop() if len(names) == 1 else _short_fingerprint(origins[0])


def _fingerprint(features: dict[str, Any]) -> str:
    return str(features.get("model", features.get("file")))


def _short_fingerprint(features: dict[str, Any]) -> str:
    """The beginning of the model's fingerprint; of a foreign file, which has none, the whole path."""
    return _fingerprint(features)[: 8 if "model" in features else None]


def _layers(features: dict[str, Any]) -> list[str]:
    layers = features.get("layers", [])
    return ["layers", ",".join(map(str, layers))] if layers else []


def _word_vectors(result: Result) -> str:
    assert result.vectors is not None
    origin = str(result.vectors.get("origin", result.vectors["fingerprint"]))
    return Path(origin).name


def _variant(row: Row, rows: Sequence[Row]) -> list[str]:
    """In what a row differs from others of the same task, data set and split: its data, vectors, preset or settings."""
    own = row.any
    alike = [other.any for other in rows if _place(other.any) == _place(own)]
    parts = []
    for split in own.data:
        if len({_files(other, split) for other in alike}) > 1:
            parts.append(f"{split} {_files(own, split)}")
        elif len({_identity(other.fingerprints.get(split)) for other in alike}) > 1:
            parts.append(f"{split} {' + '.join(own.fingerprints[split])}")
    for name, value in own.reader.items():
        if len({_identity(other.reader.get(name)) for other in alike}) > 1:
            parts.append(f"{name} {value}")
    tables = {
        other.word_vectors.word_vectors for other in rows if other.word_vectors and _place(other.any) == _place(own)
    }
    if len(tables) > 1 and row.word_vectors is not None:
        parts.append(_word_vectors(row.word_vectors))
    if len({other.preset for other in alike}) > 1:
        parts.append(own.preset)
    same_preset = [other for other in alike if other.preset == own.preset]
    for name, value in own.settings.items():
        if len({_identity(other.settings.get(name)) for other in same_preset}) > 1:
            parts.append(f"{name} {value}")
    return parts


def _place(result: Result) -> tuple[str, str, str]:
    return result.task, result.dataset, result.split


def _files(result: Result, split: str) -> str:
    """`train.conll (3,394)`: the files of a split and their sentences."""
    files = result.data.get(split, {}).items()
    return " + ".join(f"{Path(file).name} ({sentences:,})" for file, sentences in files)


def _identity(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
