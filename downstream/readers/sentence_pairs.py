"""Labelled pairs of sentences, from SNLI's JSON lines, from tab-separated text, or from
what data hubs export.

JSON lines: an object a line. Tab- or comma-separated: the first line names the columns.
Names are `gold_label` or `label`, `sentence1` or `premise`, `sentence2` or
`hypothesis`; others are ignored. Texts are tokenised by `elmoc.text.tokenizer`, which
leaves tokenised text nearly as it is.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from downstream.inputs.sentence import TaskSentence, make_sentence
from downstream.printing import note
from elmoc.errors import InputError, reading
from elmoc.files.text import read_lines
from elmoc.process import progress_bar
from elmoc.text.tokenizer import tokenise_sentence

# Spellings of a missing label: SNLI's own, where its annotators had no majority,
# MultiNLI's, data hubs', and those of tables that pandas wrote.
UNLABELLED = ("-", "hidden", "-1", "-1.0", "", "none", "null", "nan", "na", "n/a")
# Words of a sentence that are read: damaged lines, as in some copies of MultiNLI, hold
# whole files.
LONGEST = 300

# The names of label, premise and hypothesis in SNLI, and in other data.
_NAMES = {"gold_label": "label", "sentence1": "premise", "sentence2": "hypothesis"}
_NEEDED = set(_NAMES.values())


@dataclass(frozen=True)
class SentencePair:
    """Two sentences and the label of the pair.

    texts: the two as the file has them.
    """

    premise: TaskSentence
    hypothesis: TaskSentence
    label: str
    texts: list[str]


def read_sentence_pairs(path: Path) -> list[SentencePair]:
    """The pairs of a file (plain or `.gz`) in their order, without those that have no
    gold label. A note counts the pairs that are left out and the sentences that are
    cut.

    Raises:
        InputError: a line of neither format, or an empty sentence or label.
    """
    pairs: list[SentencePair] = []
    unlabelled = 0
    cut = 0
    rows = progress_bar(
        iterable=_rows(path), desc="reading", unit=" pairs", leave=False, delay=2
    )
    for line, cells in rows:
        # `None` and JSON's null are spellings of a missing label.
        label = str(cells["label"]).strip()
        if label.lower() in UNLABELLED:
            unlabelled += 1
            continue
        texts = [cells["premise"], cells["hypothesis"]]
        with reading(f"{path}, line {line}"):
            words = list(map(tokenise_sentence, texts))
            if not (all(words) and len(label.split()) == 1):
                raise InputError("a label of one word and two sentences are needed")
        cut += sum(len(each) > LONGEST for each in words)
        first, second = [
            make_sentence(each[:LONGEST], file=path, line=line) for each in words
        ]
        pairs.append(SentencePair(first, second, label, texts))
    if not pairs:
        raise InputError(f"{path} holds no pair with a gold label")
    if unlabelled or cut:
        left_out = f"{unlabelled:,} pairs without a gold label are left out"
        note(f"{path}: {left_out}, {cut:,} sentences cut to {LONGEST} words")
    return pairs


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line and cells of each pair, by the names of `_NEEDED`."""
    # Of the columns of a table, which are separated by commas or tabs.
    names: list[str] = []
    separator = ""
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        is_heading = False
        with reading(f"{path}, line {number}"):
            if not separator and line.lstrip().startswith("{"):
                # It refuses half a surrogate pair, too.
                record = msgspec.json.decode(line)
                cells = {_NAMES.get(name, name): cell for name, cell in record.items()}
            else:
                separator = separator or ("\t" if "\t" in line else ",")
                row = next(csv.reader([line])) if separator == "," else line.split("\t")
                texts = [unquoted(cell.strip()) for cell in row]
                is_heading = not names
                lowered = map(str.lower, texts)
                names = names or [_NAMES.get(name, name) for name in lowered]
                if len(texts) != len(names):
                    raise InputError(
                        f"{len(texts)} columns where the first line has {len(names)}"
                    )
                cells = dict(zip(names, texts, strict=True))
            if not cells.keys() >= _NEEDED:
                raise InputError(
                    "sentence1, sentence2 and gold_label are needed in JSON, or as "
                    "names of columns in the first line"
                )
        if not is_heading:
            yield number, cells


def unquoted(cell: str) -> str:
    """The text of a cell in which a spreadsheet wrote a text with quotes: within
    quotes, its own ones doubled.
    """
    inner = cell[1:-1]
    is_quoted = len(cell) > 1 and cell[0] == cell[-1] == '"'
    has_pairs = '""' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_quoted and has_pairs else cell
