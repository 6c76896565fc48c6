"""What are the rows of the table called, so that they can be told apart?"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from downstream.comparison import Row
from downstream.gathering import Result

NONE = "–"


@dataclass(frozen=True)
class NamedRow:
    """A row of the table and its names."""

    row: Row
    dataset: str
    """Data set and split, and in what the row differs from others on them: `wnut17 dev, hidden_size 100`."""
    encoder: str
    word_vectors: str


def name_rows(rows: Sequence[Row]) -> list[NamedRow]:
    """Name all rows of a table together."""
    encoders = _encoder_names([row.encoder for row in rows if row.encoder is not None])
    return [
        NamedRow(
            row,
            ", ".join([f"{row.any.dataset} {row.any.split}", *_variant(row, rows)]),
            NONE if row.encoder is None else encoders[str(row.encoder.encoder)],
            NONE if row.word_vectors is None else _word_vectors(row.word_vectors),
        )
        for row in rows
    ]


def _encoder_names(results: Sequence[Result]) -> dict[str, str]:
    """Identity of each encoder → the name of its feature file, or its fingerprint where that name is not its alone."""
    files: dict[str, set[str]] = {}
    for result in results:
        assert result.features is not None
        files.setdefault(str(result.encoder), set()).add(Path(str(result.features.get("file"))).stem)
    names = {}
    for result in results:
        assert result.features is not None
        encoder = str(result.encoder)
        of_others = set().union(*(stems for other, stems in files.items() if other != encoder))
        alone = len(files[encoder]) == 1 and not files[encoder] & of_others
        fingerprint = str(result.features.get("model", result.features.get("file")))[:8]
        names[encoder] = next(iter(files[encoder])) if alone else fingerprint
    return names


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
        if len({_identity(_file_names(other, split)) for other in alike}) > 1:
            parts.append(f"{split} {'+'.join(_file_names(own, split))}")
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


def _file_names(result: Result, split: str) -> list[str]:
    return [Path(file).name for file in result.data.get(split, {})]


def _identity(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
