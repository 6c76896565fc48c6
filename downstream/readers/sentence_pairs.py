"""Labelled pairs of sentences, from SNLI's JSON lines or from tab-separated text.

JSON lines: an object a line, with `gold_label`, `sentence1` and `sentence2`. Tab-separated: the first line names the
columns (`sentence1`, `sentence2`, and `gold_label` or `label`); without such a line, the three columns are label,
premise, hypothesis. Other fields and columns are ignored. Texts are tokenised by `elmoc.tokenizer`, which leaves
tokenised text nearly as it is.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from downstream.inputs.sentence import Sentence, make_sentence
from elmoc.errors import InputError, reading
from elmoc.files.text import read_lines
from elmoc.process import progress_bar
from elmoc.tokenizer import tokenise_sentence

# The gold label of SNLI where no label had a majority among the annotators.
UNDECIDED = "-"
# Words of a sentence that are read: damaged lines, of which some copies of MultiNLI have some, hold whole files.
LONGEST = 300

_TEXTS = ("sentence1", "sentence2")
_LABELS = ("gold_label", "label")
# Names of columns, by which a first line is known that is no pair.
_HEADER_WORDS = {*_TEXTS, *_LABELS, "premise", "hypothesis", "text", "text1", "text2", "sentence", "pairid", "index"}


@dataclass(frozen=True)
class SentencePair:
    """Two sentences, the label of the pair, and the two texts as the file has them."""

    premise: Sentence
    hypothesis: Sentence
    label: str
    texts: tuple[str, str]


def read_sentence_pairs(path: Path) -> list[SentencePair]:
    """The pairs of a file (plain or `.gz`) in their order, without those that have no gold label.

    A note counts the pairs that are left out and the sentences that are cut. Raises `InputError` with the line for what
    is neither of the formats, and for an empty sentence or label.
    """
    pairs: list[SentencePair] = []
    undecided = cut = 0
    for line, label, *texts in progress_bar(iterable=_rows(path), desc=path.name, unit=" pairs", leave=False, delay=2):
        if label == UNDECIDED:
            undecided += 1
            continue
        with reading(f"{path}, line {line}"):
            premise, hypothesis = map(tokenise_sentence, texts)
        if not premise or not hypothesis or len(label.split()) != 1:
            raise InputError(f"{path}, line {line}: a label of one word and two sentences are needed")
        cut += (len(premise) > LONGEST) + (len(hypothesis) > LONGEST)
        first, second = (make_sentence(words[:LONGEST], file=path, line=line) for words in (premise, hypothesis))
        pairs.append(SentencePair(first, second, label, (texts[0], texts[1])))
    if not pairs:
        raise InputError(f"{path} holds no pair with a gold label")
    if undecided or cut:
        note = f"{undecided:,} pairs without a gold label are left out, {cut:,} sentences cut to {LONGEST} words"
        print(f"note: {path}: {note}", file=sys.stderr)
    return pairs


def _rows(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """Line, label and texts of each pair."""
    names: list[str] = []
    chosen: list[int] = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        if line.lstrip().startswith("{") and not names:
            with reading(f"{path}, line {number}"):
                record = msgspec.json.decode(line)  # which also refuses half a surrogate pair
                yield number, record["gold_label"].strip(), record["sentence1"], record["sentence2"]
            continue
        columns = line.split("\t")
        if not names:
            names = [name.strip().lower() for name in columns]
            label = next((name for name in _LABELS if name in names), "")
            if {label, *_TEXTS} <= {*names}:
                chosen = [names.index(name) for name in (label, *_TEXTS)]
                continue
            if len(names) != 3 or _HEADER_WORDS & {*names}:
                raise InputError(
                    f"{path}, line {number}: JSON is needed, or names of columns (sentence1, sentence2, gold_label), "
                    "or a label, a premise and a hypothesis with tabs between them"
                )
            chosen = [0, 1, 2]
        if len(columns) != len(names):
            raise InputError(f"{path}, line {number}: {len(columns)} columns where the first line has {len(names)}")
        label, premise, hypothesis = (unquoted(columns[column].strip()) for column in chosen)
        yield number, label, premise, hypothesis


def unquoted(cell: str) -> str:
    """The text of a cell in which a spreadsheet wrote a text with quotes: within quotes, its own ones doubled."""
    inner = cell[1:-1]
    quoted = len(cell) > 1 and cell[0] == cell[-1] == '"' and '""' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if quoted else cell
