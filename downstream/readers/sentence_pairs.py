"""Labelled pairs of sentences, from SNLI's JSON lines or from tab-separated text.

JSON lines: an object a line, with `gold_label`, `sentence1` and `sentence2`. Tab-separated: the first line names the
columns (`sentence1`, `sentence2`, and `gold_label` or `label`); without such a line, the three columns are label,
premise, hypothesis. Other fields and columns are ignored. Texts are tokenised by `elmoc.tokenizer`, which leaves
tokenised text nearly as it is.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from downstream.inputs.sentence import Sentence, make_sentence
from elmoc.errors import InputError
from elmoc.files.text import read_lines
from elmoc.progress import progress_bar
from elmoc.tokenizer import tokenise_sentence

UNDECIDED = "-"
"""The gold label of SNLI where no label had a majority among the annotators."""
LONGEST = 300
"""Words of a sentence that are read; only damaged lines have more (some copies of MultiNLI hold a few)."""

_TEXTS = ("sentence1", "sentence2")
_LABELS = ("gold_label", "label")
_HEADER_WORDS = {*_TEXTS, *_LABELS, "premise", "hypothesis", "text", "text1", "text2", "sentence", "pairid", "index"}
_EXPECTED = "a first line that names the columns sentence1, sentence2 and gold_label (or label)"
_QUOTED = re.compile(r'"(?:[^"]|"")*""(?:[^"]|"")*"')  # as spreadsheets write a text that has quotes in it


@dataclass(frozen=True)
class SentencePair:
    """Two sentences and the label of the pair.

    texts         sentence1 and sentence2 as the file has them
    undecided     how many pairs without a gold label were left out just before this one (for the last: also after it)
    shortened     how many of the two sentences were cut to `LONGEST` words
    """

    premise: Sentence
    hypothesis: Sentence
    label: str
    texts: tuple[str, str]
    undecided: int
    shortened: int


def read_sentence_pairs(path: Path) -> list[SentencePair]:
    """The pairs of a file (plain or `.gz`) in their order, without those that have no gold label.

    Raises `InputError`, with the line, for what is neither of the formats, an empty sentence and an empty label.
    """
    pairs: list[SentencePair] = []
    undecided = 0
    rows = progress_bar(iterable=_rows(path), desc=path.name, unit=" pairs", leave=False, delay=2)
    for line, label, texts in rows:
        if label == UNDECIDED:
            undecided += 1
            continue
        if not label:
            raise InputError(
                f"{path}, line {line}: the label is empty: write one, or {UNDECIDED} to leave the pair out"
            )
        words = [tokenise_sentence(text) for text in texts]
        for name, found in zip(_TEXTS, words, strict=True):
            if not found:
                raise InputError(f"{path}, line {line}: {name} is empty: both sentences of a pair need a word")
        premise, hypothesis = (make_sentence(found[:LONGEST], file=path, line=line) for found in words)
        shortened = sum(len(found) > LONGEST for found in words)
        pairs.append(SentencePair(premise, hypothesis, label, texts, undecided, shortened))
        undecided = 0
    if not pairs:
        raise InputError(f"{path} holds no pair with a gold label: JSON lines are needed, or columns with {_EXPECTED}")
    pairs[-1] = replace(pairs[-1], undecided=pairs[-1].undecided + undecided)
    return pairs


def _rows(path: Path) -> Iterator[tuple[int, str, tuple[str, str]]]:
    """Line, label and texts of each pair."""
    lines = ((number, line) for number, line in enumerate(read_lines(path), 1) if line.strip())
    first = next(lines, None)
    if first is None:
        return
    if first[1].lstrip().startswith("{"):
        yield from (_json_row(path, *row) for row in chain([first], lines))
        return
    names = [name.strip().lower() for name in first[1].split("\t")]
    label = next((name for name in _LABELS if name in names), None)
    if label is not None and set(_TEXTS) <= set(names):
        chosen = [names.index(name) for name in (label, *_TEXTS)]
    elif len(names) == 3 and not _HEADER_WORDS & set(names):
        chosen = [0, 1, 2]
        yield _column_row(path, *first, chosen, 3)
    else:
        raise InputError(
            f"{path}, line {first[0]}: this is neither a JSON object, nor {_EXPECTED}, nor a label, a premise and a "
            "hypothesis with tabs between them"
        )
    for number, line in lines:
        yield _column_row(path, number, line, chosen, len(names))


def _json_row(path: Path, number: int, line: str) -> tuple[int, str, tuple[str, str]]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {number}: this is no JSON object ({error}); the line is damaged") from None
    values = []
    for name in (_LABELS[0], *_TEXTS):
        value = record.get(name) if isinstance(record, dict) else None
        if not isinstance(value, str):
            raise InputError(f'{path}, line {number}: a JSON object with a text named "{name}" is needed')
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise InputError(
                f'{path}, line {number}: "{name}" holds half a character (a lone surrogate): mend the line'
            )
        values.append(value)
    return number, values[0].strip(), (values[1], values[2])


def _column_row(path: Path, number: int, line: str, chosen: list[int], width: int) -> tuple[int, str, tuple[str, str]]:
    columns = line.split("\t")
    if len(columns) != width:
        raise InputError(
            f"{path}, line {number}: {len(columns)} columns where the first line has {width}; the line is damaged, or "
            "a text has a tab in it"
        )
    label, *texts = (_unquoted(columns[column].strip()) for column in chosen)
    if " " in label:
        raise InputError(f"{path}, line {number}: {label!r} is no label, which is one word: {_EXPECTED} is needed")
    return number, label, (texts[0], texts[1])


def _unquoted(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if _QUOTED.fullmatch(cell) else cell
