"""Labelled pairs of sentences, from SNLI's JSON lines or from tab-separated text.

JSON lines: an object a line, with `gold_label`, `sentence1` and `sentence2`. Tab-separated: the first line names the
columns (`sentence1`, `sentence2`, and `gold_label` or `label`); without such a line, the three columns are label,
premise, hypothesis. Other fields and columns are ignored. Texts are tokenised by `elmoc.tokenizer`, which leaves
tokenised text nearly as it is.
"""

import reprlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path

from downstream.inputs.sentence import Sentence, make_sentence
from elmoc.errors import InputError
from elmoc.files.records import convert, parse_json
from elmoc.files.text import read_lines
from elmoc.progress import progress_bar
from elmoc.tokenizer import tokenise_sentence

UNDECIDED = "-"
"""The gold label of SNLI where no label had a majority among the annotators."""
LONGEST, LONGEST_TEXT = 300, 20_000
"""Words and characters of a sentence that are read; only damaged lines have more (some copies of MultiNLI do)."""
LONGEST_LABEL = 100
"""Characters of a label."""

_TEXTS = ("sentence1", "sentence2")
_LABELS = ("gold_label", "label")
_HEADER_WORDS = {*_TEXTS, *_LABELS, "premise", "hypothesis", "text", "text1", "text2", "sentence", "pairid", "index"}
_EXPECTED = "a first line that names the columns sentence1, sentence2 and gold_label (or label)"


@dataclass(frozen=True)
class _PairLine:
    """What is read of a JSON line; its other fields are ignored."""

    gold_label: str
    sentence1: str
    sentence2: str


@dataclass(frozen=True)
class SentencePair:
    """Two sentences and the label of the pair.

    texts         sentence1 and sentence2 as the file has them
    undecided     how many pairs without a gold label were left out just before this one (for the last: also after it)
    shortened     how many of the two sentences were cut to `LONGEST` words or `LONGEST_TEXT` characters
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
        if len(label) > LONGEST_LABEL:
            raise InputError(
                f"{path}, line {line}: the label {reprlib.repr(label)} is longer than {LONGEST_LABEL} characters: mend "
                "the line, or take it out"
            )
        words = [tokenise_sentence(text[:LONGEST_TEXT]) for text in texts]
        for name, found in zip(_TEXTS, words, strict=True):
            if not found:
                raise InputError(f"{path}, line {line}: {name} is empty: both sentences of a pair need a word")
        premise, hypothesis = (make_sentence(found[:LONGEST], file=path, line=line) for found in words)
        shortened = sum(
            len(found) > LONGEST or len(text) > LONGEST_TEXT for found, text in zip(words, texts, strict=True)
        )
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
    where, advice = f"{path}, line {number}", "mend the line, or take it out"
    record = parse_json(line, where=where, advice=advice)
    if isinstance(record, dict):
        record = {each.name: record[each.name] for each in fields(_PairLine) if each.name in record}
    pair = convert(record, _PairLine, where=where, advice=advice)
    return number, pair.gold_label.strip(), (pair.sentence1, pair.sentence2)


def _column_row(path: Path, number: int, line: str, chosen: list[int], width: int) -> tuple[int, str, tuple[str, str]]:
    columns = line.split("\t")
    if len(columns) != width:
        raise InputError(
            f"{path}, line {number}: {len(columns)} columns where the first line has {width}; the line is damaged, or "
            "a text has a tab in it"
        )
    label, *texts = (unquoted(columns[column].strip()) for column in chosen)
    if " " in label:
        raise InputError(
            f"{path}, line {number}: {reprlib.repr(label)} is no label, which is one word: {_EXPECTED} is needed"
        )
    return number, label, (texts[0], texts[1])


def unquoted(cell: str) -> str:
    """The text of a cell in which a spreadsheet wrote a text with quotes: within quotes, its own ones doubled."""
    inner = cell[1:-1]
    quoted = len(cell) > 1 and cell[0] == cell[-1] == '"' and '""' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if quoted else cell
