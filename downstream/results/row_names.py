"""Names of the rows of the table: what tells their data, their encoder and their word vectors apart."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from downstream.inputs.kinds import SEPARATOR
from downstream.results.comparison import Row
from downstream.results.reading import Result
from downstream.results.records import STATE_SETTINGS, layer_names, percent
from elmoc.errors import InputError

NONE = "–"
FINGERPRINTS = ("model_fingerprint", "model")
"""What lines say of an encoder that tells it from others: of a peer, or of a model."""


@dataclass(frozen=True)
class NamedRow(Row):
    """A row of the table and its names."""

    dataset: str
    """Data set and split, and in what the row differs from others on them: `wnut17 dev, hidden_size 100`."""
    encoder: str
    word_vectors: str


def name_rows(rows: Sequence[Row], *, given: Mapping[str, str]) -> list[NamedRow]:
    """Name all rows of a table together; `given` maps beginnings of encoders' fingerprints to names for them."""
    encoders = _encoder_names([row.with_encoder for row in rows if row.with_encoder], given)
    vectors = _vectors_names([row.with_vectors for row in rows if row.with_vectors])
    return [
        NamedRow(
            **vars(row),
            dataset=", ".join([f"{row.first.dataset} {row.first.split}", *_differences(row, rows, vectors)]),
            encoder=encoders[str(row.with_encoder.encoder)] if row.with_encoder else NONE,
            word_vectors=vectors[str(row.with_vectors.word_vectors)] if row.with_vectors else NONE,
        )
        for row in rows
    ]


def several_encoders(rows: Sequence[NamedRow]) -> bool:
    """Whether rows have to say which encoder they are about."""
    return len({row.encoder for row in rows} - {NONE}) > 1


def _encoder_names(results: Sequence[Result], given: Mapping[str, str]) -> dict[str, str]:
    """Identity of each encoder → a name that no other one has."""
    origins: dict[str, list[dict[str, Any]]] = {}
    options: dict[str, str] = {}
    for result in results:
        origins.setdefault(str(result.encoder), []).append(result.features or {})
        options[str(result.encoder)] = "".join(f" {name} {value}" for name, value in result.state_settings.items())
    fingerprints = {_fingerprint(features) for features, *_ in origins.values()}
    for beginning in given:
        if not any(fingerprint.startswith(beginning) for fingerprint in fingerprints):
            raise InputError(
                f"--encoder {beginning}=…: no encoder here has a fingerprint that begins so; there are "
                f"{', '.join(sorted(fingerprints)) or 'none at all'}"
            )
    names = {encoder: _encoder_name(found, given) + options[encoder] for encoder, found in origins.items()}
    for more in (_dump, _word_vectors_of):
        taken = list(names.values())
        for encoder, name in names.items():
            if taken.count(name) > 1:
                names[encoder] = f"{name} {more(origins[encoder][0])}".rstrip()
    return _numbered(names)


def _numbered(names: Mapping[str, str]) -> dict[str, str]:
    """The names, equal ones with a number behind them: of files that were written again, say."""
    taken = list(names.values())
    return {
        identity: f"{name} ({taken[:place].count(name) + 1})" if taken.count(name) > 1 else name
        for place, (identity, name) in enumerate(names.items())
    }


def _dump(features: dict[str, Any]) -> str:
    """Weights, layers and options of a dump."""
    layers = [f"layers {','.join(layer_names(features))}"] if layer_names(features) else []
    carried = ["carry_state"] if features.get("carry_state") else []
    pooling = [f"pooling {features['pooling']}"] if "pooling" in features else []
    return " ".join([_short_fingerprint(features), *layers, *carried, *pooling])


def _word_vectors_of(features: dict[str, Any]) -> str:
    return f"word vectors {str(features['word_vectors'])[:8]}" if "word_vectors" in features else ""


def _encoder_name(origins: Sequence[dict[str, Any]], given: Mapping[str, str]) -> str:
    """The name that is given, that of the one file or directory the features are from, or the fingerprint."""
    for beginning, name in given.items():
        if _fingerprint(origins[0]).startswith(beginning):
            return name
    directories = {Path(str(origin["directory"])) for origin in origins if "directory" in origin}
    names = {(path.parent if path.name == "model" else path).name for path in directories}
    names = names or {Path(str(origin.get("file"))).stem for origin in origins}
    return names.pop() if len(names) == 1 else _short_fingerprint(origins[0])


def _fingerprint(features: dict[str, Any]) -> str:
    """That of a peer, of a model, or the path of a foreign file, which has none."""
    return str(next((features[name] for name in FINGERPRINTS if name in features), features.get("file")))


def _short_fingerprint(features: dict[str, Any]) -> str:
    """The beginning of the fingerprint; of a foreign file the whole path."""
    return _fingerprint(features)[: 8 if features.keys() & set(FINGERPRINTS) else None]


def _vectors_names(results: Sequence[Result]) -> dict[str, str]:
    """Identity of each result's word vectors → the names of their files, and where others have the same, a number."""
    origins = {
        str(result.word_vectors): str((result.vectors or {}).get("origin", result.word_vectors)) for result in results
    }
    names = {
        identity: SEPARATOR.join(Path(each).name for each in origin.split(SEPARATOR))
        for identity, origin in origins.items()
    }
    return _numbered(names)


def _differences(row: Row, rows: Sequence[Row], vectors: Mapping[str, str]) -> list[str]:
    """In what a row differs from others of the same task, data set and split: its data, vectors, preset or settings."""
    own, alike = row.first, [other for other in rows if other.first.place == row.first.place]
    firsts = [other.first for other in alike]
    parts = []
    for split in own.data:
        if _differ(_files(other, split) for other in firsts):
            parts.append(f"{split} {_files(own, split)}")
        elif _differ(other.fingerprints.get(split) for other in firsts):
            parts.append(f"{split} {' + '.join(own.fingerprints[split])}")
    parts += _changed(own.reader, [other.reader for other in firsts])
    if row.with_vectors and _differ(other.with_vectors.word_vectors for other in alike if other.with_vectors):
        parts.append(vectors[str(row.with_vectors.word_vectors)])
    if _differ(other.preset for other in firsts):
        parts.append(own.preset)
    return parts + _changed(own.settings, [other.settings for other in firsts if other.preset == own.preset])


def _files(result: Result, split: str) -> str:
    """`train.conll (3,394)`: the files of a split and their sentences."""
    files = result.data.get(split, {}).items()
    return " + ".join(f"{Path(file).name} ({sentences:,})" for file, sentences in files)


def _changed(own: Mapping[str, Any], all_options: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{percent(value)} of train" if name == "train_fraction" else f"{name} {value}"
        for name, value in own.items()
        if name not in STATE_SETTINGS and _differ(each.get(name) for each in all_options)
    ]


def _differ(values: Iterable[Any]) -> bool:
    return len({json.dumps(value, sort_keys=True) for value in values}) > 1
