"""Tagged sentences as rows, as data hubs export them: a list of words and a list of
tags in each; JSON lines, a JSON array, Parquet or Arrow files.

Tags may be numbers of names, which stand in the features of the data set: in a file of
JSON beside the rows, or in Parquet's own metadata.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from downstream.readers.columns import ColumnSentence
from elmoc.errors import InputError, reading
from elmoc.files.compression import open_binary
from elmoc.files.records import read_json
from elmoc.text.arrow_files import ColumnFiles, is_parquet
from elmoc.text.documents import TextRange, reader_of
from elmoc.text.json_lines import JsonRows

# Keys of a row; the first of each that is a list is read.
WORDS = ("tokens", "words", "token", "text", "sentence")
TAGS = ("ner_tags", "tags", "labels", "ner", "ner_labels", "bio_tags", "label")
# Files of a data set's features, beside its rows.
FEATURES = ("dataset_info.json", "dataset_infos.json", "features.json")

# How a JSON array of rows begins; in columns a label stands behind a word `[`.
_ARRAY = re.compile(rb"\s*\[\s*\{")


def read_tagged_rows(path: Path, names: Sequence[str]) -> list[ColumnSentence]:
    """The sentences of a file of rows, in columns: word, tag; none where the file is of
    another kind. Rows without words are left out.

    Args:
        path: the file.
        names: of tags that are numbers; by default those of the data set's features.

    Raises:
        InputError: a row without words and as many tags, or a number without a name.
    """
    sentences = []
    words_key = ""
    tags_key = ""
    unit, rows = _rows(path)
    for number, row in rows:
        if not tags_key:
            lists = [key for key in row if isinstance(row[key], list)]
            words_key = next((key for key in WORDS if key in lists), "")
            tags_key = next((key for key in TAGS if key in lists), "")
            names = names or _class_names(path, tags_key)
        with reading(f"{path}, {unit} {number}"):
            if words_key not in row or tags_key not in row:
                raise InputError(
                    f"JSON and Parquet need a list of words ({', '.join(WORDS)}) and "
                    f"one of tags ({', '.join(TAGS)}), not {', '.join(row)}"
                )
            words = msgspec.convert(row[words_key], list[str])
            tags = msgspec.convert(row[tags_key], list[int | str])
            numbers = {tag for tag in tags if isinstance(tag, int)}
            if len(words) != len(tags):
                raise InputError(f"{len(words)} words have {len(tags)} tags")
            if not numbers <= set(range(len(names))):
                raise InputError(
                    f"tags are numbers ({max(numbers)}), which no JSON of features "
                    f"({FEATURES[0]}) beside the file names: give their names by "
                    "--tag-names O,B-PER,… in the order of the numbers"
                )
        cells = [names[tag] if isinstance(tag, int) else tag for tag in tags]
        columns = [list(pair) for pair in zip(words, cells, strict=True)]
        if columns:
            lines = [number] * len(columns)
            sentences.append(ColumnSentence(path, columns, lines, unit))
    if unit and not sentences:
        raise InputError(f"{path} holds no rows with words")
    return sentences


def _rows(path: Path) -> tuple[str, Iterable[tuple[int, Mapping[str, Any]]]]:
    """What the numbers of a file's rows count, and the rows with their numbers; "" and
    none for a file of another kind.
    """
    with reading(path), open_binary(path) as file:
        start = file.read(1_000)
        if _ARRAY.match(start):
            objects = msgspec.json.decode(
                start + file.read(), type=list[dict[str, Any]]
            )
            return "row", enumerate(objects, 1)
    reader = reader_of(path)
    if isinstance(reader, (JsonRows, ColumnFiles)):
        return reader.unit, reader.rows(TextRange(path))
    return "", []


def _class_names(path: Path, key: str) -> list[str]:
    """The names of the numbers that a feature of a data set has; none where they are
    not known, or are others in parts of the data set.
    """
    beside = [path.with_name(name) for name in FEATURES]
    described = [read_json(each) for each in beside if each.is_file()]
    if is_parquet(path):
        from pyarrow import parquet

        with reading(path):
            metadata = parquet.read_schema(path).metadata or {}
            described.append(msgspec.json.decode(metadata.get(b"huggingface", b"{}")))
    features = [value for name, value in _fields(described) if name == key]
    found = [value for name, value in _fields(features) if name == "names"]
    is_one = bool(found) and all(each == found[0] for each in found)
    return list(map(str, found[0])) if is_one else []


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield all names and values of the objects in a JSON value."""
    if isinstance(value, Mapping):
        yield from value.items()
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _fields(each)
