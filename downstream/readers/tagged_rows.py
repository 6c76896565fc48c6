"""Tagged sentences as rows, as data hubs export them: a list of words and a list of
tags in each, in any form of rows but a table.

Tags may be numbers of names, which the user gives, or Parquet's own metadata.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from downstream.readers.columns import ColumnSentence
from downstream.readers.rows import read_cells
from elmoc.errors import InputError, reading
from elmoc.text.parquet_files import ParquetFiles

# Keys of a row; the first of each that is there is read.
WORDS = ("tokens", "words", "token", "text", "sentence")
TAGS = ("ner_tags", "tags", "labels", "ner", "ner_labels", "bio_tags", "label")
WANTED = (
    f"ner reads a list of words ({', '.join(WORDS)}) and one of tags "
    f"({', '.join(TAGS)}) in JSON and Parquet"
)
# No tag that is a name.
_NUMBER = re.compile(r"-?\d+")


def read_tagged_rows(path: Path, names: Sequence[str]) -> list[ColumnSentence]:
    """The sentences of a file of rows, in columns: word, tag. Rows without words are
    left out.

    Args:
        path: the file.
        names: of tags that are numbers; by default those of Parquet's metadata.

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
                    f"tags are numbers ({unnamed[0]}), of which Parquet's metadata, or "
                    f"--tag-names, names {len(names) or 'none'}: give all by "
                    "--tag-names O,B-PER,… in the order of the numbers, from 0"
                )
            pairs = zip(words, tags, strict=True)
            rows = [[word, named.get(tag, tag)] for word, tag in pairs]
        if rows:
            sentences.append(ColumnSentence(path, rows, [number] * len(rows)))
    if not sentences:
        raise InputError(f"{path} holds no rows with words")
    return sentences


def _class_names(path: Path, column: str) -> list[str]:
    """The names of the numbers in a column, as data hubs write them into Parquet's
    metadata; none where they are not known.
    """
    if ParquetFiles().takes(path):
        from pyarrow import parquet

        with reading(path), suppress(KeyError, TypeError):
            metadata = parquet.read_schema(path).metadata or {}
            described = msgspec.json.decode(metadata[b"huggingface"])
            names = described["info"]["features"][column]["feature"]["names"]
            return msgspec.convert(names, list[str])
    return []
