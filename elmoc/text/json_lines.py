"""JSON lines: rows, and tokenised documents as coreference has them."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, TypeVar

import msgspec

from elmoc.errors import reading
from elmoc.files.compression import AnyPath, unpacked_name
from elmoc.files.text import place_of, read_lines
from elmoc.text.reader import (
    SAMPLE_CHARACTERS,
    TextDocument,
    TextRange,
    TextReader,
    first_lines,
)
from elmoc.text.rows import RowReader, Word

Object = TypeVar("Object")


class JsonRows(RowReader):
    """JSON lines, an object each; a line is in memory as a whole."""

    unit = "line"
    document_end = re.compile(rb"\n")

    def takes(self, path: AnyPath) -> bool:
        """Files called `.jsonl` or `.jsonlines`, compressed or not, and others that
        begin with nothing but objects.
        """
        if unpacked_name(path).lower().endswith((".jsonl", ".jsonlines")):
            return True
        sample = first_lines(read_lines(path), SAMPLE_CHARACTERS)
        rows = [line for line in sample if line.strip()]
        return bool(rows) and all(re.match(r'\s*\{\s*"', row) for row in rows)

    def rows(self, text: TextRange) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """See `RowReader`."""
        return read_objects(text, dict[str, Any])


class JsonDocument(msgspec.Struct):
    """A tokenised document; what else stands in its line (speakers, clusters) is not
    read. No name in HDF5 is `.`.
    """

    doc_key: Annotated[str, msgspec.Meta(pattern=r"^(?!\.$)[^\0]+$")]
    sentences: Annotated[list[list[Word]], msgspec.Meta(min_length=1)]


class JsonDocuments(TextReader):
    """Tokenised documents as JSON lines with `doc_key` and `sentences`."""

    has_keys = True

    def takes(self, path: AnyPath) -> bool:
        """JSON lines whose first one has both."""
        if JsonRows().takes(path):
            first = next(filter(str.strip, read_lines(path)), "{}")
            with suppress(msgspec.DecodeError, RecursionError):
                record = msgspec.json.decode(first, type=dict[str, Any])
                return {"doc_key", "sentences"} <= record.keys()
        return False

    def read(self, text: TextRange) -> Iterator[TextDocument]:
        """See `TextReader`."""
        for number, found in read_objects(text, JsonDocument):
            yield TextDocument(found.doc_key, found.sentences, True, number)


def read_objects(text: TextRange, kind: type[Object]) -> Iterator[tuple[int, Object]]:
    """The numbers of the lines of a text that are not blank, and their objects."""
    for number, line in enumerate(read_lines(text.path, text.start, text.end), 1):
        if line.strip():
            with reading(place_of(text.path, number, text.start)):
                yield number, msgspec.json.decode(line, type=kind)
