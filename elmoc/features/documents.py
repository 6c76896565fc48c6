"""Documents: a jsonlines file of them, a JSON object a line with `doc_key` and `sentences`, lists of words."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elmoc.errors import InputError
from elmoc.files.records import convert, parse_json
from elmoc.files.text import read_lines

ADVICE = 'give an object a line, {"doc_key": "…", "sentences": [["The", "cat", "sat", "."], …]}'


@dataclass(frozen=True)
class Document:
    """One document; what else its line has (clusters, speakers) is not read."""

    doc_key: str
    sentences: list[list[str]]


def read_documents(path: Path | str) -> Iterator[Document]:
    """The documents of a jsonlines file (plain or `.gz`), one after the other.

    Raises an `InputError`, with file and line, for what is no such object, and for a key that was there before.
    """
    lines: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        found = parse_json(line, where=where, advice=ADVICE)
        if not isinstance(found, dict):
            raise InputError(f"{where} is not a JSON object: {ADVICE}")
        known = {key: found[key] for key in ("doc_key", "sentences") if key in found}
        document = convert(known, Document, where=where, advice=ADVICE)
        before = lines.setdefault(document.doc_key, number)
        if before != number:
            raise InputError(f"{where} has the doc_key of line {before} ({document.doc_key!r}): give each its own")
        yield document
