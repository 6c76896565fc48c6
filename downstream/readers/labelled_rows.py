"""Labelled rows: texts with a label, in each form of rows that `read_cells` reads."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from downstream.printing import counted
from downstream.readers.label_sets import NUMBER, LabelSet
from downstream.readers.rows import read_cells
from elmoc.errors import InputError, note, shortened, warn

# Spellings of a missing label: SNLI's own, where its annotators had no majority,
# MultiNLI's, data hubs', Python's and that of pandas.
UNLABELLED = ("-", "hidden", "-1", "-1.0", "", "None", "nan", "NaN")
# Further ones, in any case, where files cannot have such a class.
UNLABELLED_WORDS = ("none", "null", "nan", "na", "n/a")


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
    for line, cells in read_cells(path, labels.columns, labels.wanted):
        found, *texts = cells.values()
        label = str(found).strip()
        is_none = not labels.is_open and label.lower() in UNLABELLED_WORDS
        if is_none or label in UNLABELLED:
            unlabelled += 1
        elif all(isinstance(text, str) for text in texts):
            rows.append(LabelledRow(line, label, texts))
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
    missing = [name for name in labels.names if name not in classes.values()]
    for row in rows:
        if row.label not in classes and not labels.is_open:
            raise InputError(
                f"{path}, line {row.line}: the label {shortened(row.label)!r} of "
                f"{shown} is not known: {labels.wanted}"
            )
    if missing and not labels.is_open:
        warn(f"{path} has the labels {shown} alone, and none of {', '.join(missing)}")
    # Numbers of other labels, such as those of RTE, look alike.
    if not classes and all(map(NUMBER.fullmatch, found)):
        warn(
            f"{path}: the labels {shown} stay numbers, as they are not exactly 0 to "
            f"{len(labels.names) - 1}: where they stand for {', '.join(labels.names)}, "
            "spell them so in all parts"
        )
    others = [f"{label} as {name}" for label, name in classes.items() if label != name]
    if others:
        note(f"{path}: labels are read {shortened(', '.join(others))}")
    return classes
