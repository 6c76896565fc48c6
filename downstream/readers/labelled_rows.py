"""Labelled rows: texts with a label, from JSON lines, Parquet, and tab- or
comma-separated text, as data hubs and spreadsheets export them.

The first line of a table names its columns. A table of two columns, one of them labels,
needs no such line.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from downstream.printing import counted, note, warn
from downstream.readers.label_sets import NUMBERED, LabelSet
from elmoc.errors import InputError, shortened
from elmoc.files.compression import open_binary
from elmoc.text.documents import TextRange, reader_of
from elmoc.text.json_lines import JsonRows
from elmoc.text.rows import RowReader
from elmoc.text.tables import Tables, read_table

# Spellings of a missing label: SNLI's own, where its annotators had no majority,
# MultiNLI's, data hubs', and those of tables that pandas wrote.
UNLABELLED = ("-", "hidden", "-1", "-1.0", "", "none", "null", "nan", "na", "n/a")


class LabelledRow(NamedTuple):
    """The label and the texts of a row, and the line of the file on which it begins (of
    Parquet: the number of the row).
    """

    line: int
    label: str
    texts: list[str]


def read_labelled_rows(path: Path, labels: LabelSet) -> list[LabelledRow]:
    """The rows of a file (plain or compressed) in their order, without those that have
    no label.

    Notes say how many these are, and which labels are read as others.

    Raises:
        InputError: a column is missing, a text is no string, or a label is unknown.
    """
    rows = []
    unlabelled = 0
    for line, cells in _chosen_cells(path, labels):
        # `None` and JSON's null are spellings of a missing label.
        label = str(cells[0]).strip()
        if label.lower() in UNLABELLED:
            unlabelled += 1
        elif all(isinstance(text, str) for text in cells[1:]):
            rows.append(LabelledRow(line, label, cells[1:]))
        else:
            raise InputError(f"{path}, line {line}: texts must be strings")
    if not rows:
        raise InputError(f"{path} holds no row with a gold label: {labels.wanted}")
    if unlabelled:
        note(f"{path}: {counted(unlabelled, 'row')} without a gold label left out")
    classes = _classes(path, rows, labels)
    return [row._replace(label=classes.get(row.label, row.label)) for row in rows]


def _classes(
    path: Path, rows: Sequence[LabelledRow], labels: LabelSet
) -> Mapping[str, str]:
    """The class of each label of a file that names one."""
    found = sorted({row.label for row in rows})
    shown = shortened(", ".join(found))
    classes = labels.classes(found)
    unknown = [row for row in rows if row.label not in classes]
    missing = [name for name in labels.names if name not in classes.values()]
    if (unknown or missing) and not labels.is_open:
        for other in NUMBERED:
            theirs = other.classes(found)
            if len(theirs) == len(found) and set(theirs.values()) == set(other.names):
                raise InputError(
                    f"{path} has the labels {shown}, as {other.task} has them: "
                    f"{labels.wanted}"
                )
        for row in unknown:
            raise InputError(
                f"{path}, line {row.line}: the label {shortened(row.label)!r} of "
                f"{shown} is not known: {labels.wanted}"
            )
        warn(f"{path} has the labels {shown} alone, and none of {', '.join(missing)}")
    others = [f"{label} as {name}" for label, name in classes.items() if label != name]
    if others:
        note(f"{path}: labels are read {shortened(', '.join(others))}")
    return classes


def _chosen_cells(path: Path, labels: LabelSet) -> Iterator[tuple[int, list[Any]]]:
    """Yield the line of each row, and its cells in the order of `labels.columns`."""
    names, rows = _rows(path)
    known = {name.strip().lower(): name for name in names}
    chosen = []
    for options in labels.columns:
        found = [known[option] for option in options if option in known]
        chosen += found[:1]
        if len(found) > 1:
            note(f"{path}: of the columns {', '.join(found)}, {found[0]} is read")
    are_labels = [bool(labels.classes([name.strip()])) for name in names]
    # A table without a line of names begins with a label and a text.
    if not chosen and len(labels.columns) == 2 and sorted(are_labels) == [False, True]:
        chosen = sorted(names, key=lambda name: not labels.classes([name.strip()]))
        rows = chain([(1, {name: name for name in names})], rows)
        note(f"{path}: its first line is read as a label and a text, not as names")
    if len(chosen) < len(labels.columns):
        raise InputError(
            f"{path}, line 1 has {shortened(', '.join(names)) or 'nothing'}: "
            f"{labels.wanted}"
        )
    for line, cells in rows:
        if not cells.keys() >= set(chosen):
            raise InputError(f"{path}, line {line}: {' and '.join(chosen)} are needed")
        yield line, [cells[name] for name in chosen]


def _rows(path: Path) -> tuple[list[str], Iterator[tuple[int, Mapping[str, Any]]]]:
    """The names of the columns, and the line and the cells of each row. A table may
    have any name.
    """
    start = beginning(path)
    reader = JsonRows() if start.startswith(b"{") else reader_of(path)
    if isinstance(reader, RowReader) and not isinstance(reader, Tables):
        rows = reader.rows(TextRange(path))
        line, first = next(rows, (1, {}))
        return list(first), chain([(line, first)], rows)
    return read_table(path, "\t" if b"\t" in start.partition(b"\n")[0] else ",")


def beginning(path: Path) -> bytes:
    """The first bytes of the text of a file, without a byte order mark and white space
    before them.
    """
    with open_binary(path) as file:
        return file.read(1 << 16).lstrip(b"\xef\xbb\xbf \r\n")
