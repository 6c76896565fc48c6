"""Tagged sentences as rows, as data hubs export them: a list of words and a list of
tags in each, in any form of rows but a table.

Tags may be numbers of names, which stand in the features of the data set: in a file of
JSON beside the rows, or in Parquet's own metadata.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from downstream.readers.columns import ColumnSentence
from downstream.readers.rows import read_cells
from elmoc.errors import InputError, reading
from elmoc.files.records import read_json
from elmoc.text.arrow_files import is_parquet

# Keys of a row; the first of each that is there is read.
WORDS = ("tokens", "words", "token", "text", "sentence")
TAGS = ("ner_tags", "tags", "labels", "ner", "ner_labels", "bio_tags", "label")
WANTED = (
    f"ner reads a list of words ({', '.join(WORDS)}) and one of tags "
    f"({', '.join(TAGS)}) in JSON and Parquet"
)
# Files of a data set's features, beside its rows.
FEATURES = ("dataset_info.json", "dataset_infos.json", "features.json")
# No tag that is a name.
_NUMBER = re.compile(r"-?\d+")


def read_tagged_rows(path: Path, names: Sequence[str]) -> list[ColumnSentence]:
    """The sentences of a file of rows, in columns: word, tag. Rows without words are
    left out.

    Args:
        path: the file.
        names: of tags that are numbers; by default those of the data set's features.

    Raises:
        InputError: a row without words and as many tags, or a number without a name.
    """
    sentences = []
    for number, cells in read_cells(path, (WORDS, TAGS), WANTED):
        with reading(f"{path}, line {number}"):
            words_column, tags_column = cells
            words = msgspec.convert(cells[words_column], list[str])
            given = msgspec.convert(cells[tags_column], list[int | str])
            # Tables become JSON with numbers as text.
            tags = list(map(str, given))
            numbers = list(filter(_NUMBER.fullmatch, tags))
            if numbers and not names:
                names = _class_names(path, tags_column)
            named = {str(place): name for place, name in enumerate(names)}
            unnamed = [tag for tag in numbers if tag not in named]
            if unnamed:
                raise InputError(
                    f"tags are numbers ({unnamed[0]}), of which the JSON of features "
                    f"({FEATURES[0]}) beside the file, or --tag-names, names "
                    f"{len(names) or 'none'}: give all by --tag-names O,B-PER,… in the "
                    "order of the numbers, from 0"
                )
            pairs = zip(words, tags, strict=True)
            rows = [[word, named.get(tag, tag)] for word, tag in pairs]
        if rows:
            sentences.append(ColumnSentence(path, rows, [number] * len(rows)))
    if not sentences:
        raise InputError(f"{path} holds no rows with words")
    return sentences


def _class_names(path: Path, column: str) -> list[str]:
    """The names of the numbers in a column of a data set; none where they are not
    known, or are others in parts of the data set.
    """
    beside = [path.with_name(name) for name in FEATURES]
    described = [read_json(each) for each in beside if each.is_file()]
    if is_parquet(path):
        from pyarrow import parquet

        with reading(path):
            metadata = parquet.read_schema(path).metadata or {}
            described.append(msgspec.json.decode(metadata.get(b"huggingface", b"{}")))
    features = [value for name, value in _fields(described) if name == column]
    found = [value for name, value in _fields(features) if name == "names"]
    is_one = bool(found) and found.count(found[0]) == len(found)
    return list(map(str, found[0])) if is_one else []


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield all names and values of the objects in a JSON value."""
    if isinstance(value, Mapping):
        yield from value.items()
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _fields(each)
