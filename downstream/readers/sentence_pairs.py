"""Labelled pairs of sentences, from SNLI's JSON lines, from tab-separated text, or from
what data hubs export.

JSON lines: an object a line. Tab- or comma-separated: the first line names the columns;
without such a line, the three columns are label, premise, hypothesis, with tabs between
them. Names are `gold_label` or `label`, `sentence1` or `premise`, `sentence2` or
`hypothesis`; others are ignored. Texts are tokenised by `elmoc.text.tokenizer`, which leaves
tokenised text nearly as it is.
"""

import csv
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

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

# The names of label and texts.
_NAMES = (
    ("gold_label", "label"),
    ("sentence1", "premise"),
    ("sentence2", "hypothesis"),
)
# Names of columns: a first line that holds some is a heading, and no pair.
_HEADER_WORDS = {
    *chain(*_NAMES),
    "text",
    "text1",
    "text2",
    "sentence",
    "pairid",
    "index",
}


@dataclass(frozen=True)
class SentencePair:
    """Two sentences, the label of the pair, and the two texts as the file has them."""

    premise: TaskSentence
    hypothesis: TaskSentence
    label: str
    texts: tuple[str, str]


def read_sentence_pairs(path: Path) -> list[SentencePair]:
    """The pairs of a file (plain or `.gz`) in their order, without those that have no
    gold label.

    A note counts the pairs that are left out and the sentences that are cut. Raises
    `InputError` with the line for what is neither of the formats, and for an empty
    sentence or label.
    """
    pairs: list[SentencePair] = []
    unlabelled = cut = 0
    for line, label, *texts in progress_bar(
        iterable=_rows(path), desc="reading", unit=" pairs", leave=False, delay=2
    ):
        if label.lower() in UNLABELLED:
            unlabelled += 1
            continue
        with reading(f"{path}, line {line}"):
            premise, hypothesis = map(tokenise_sentence, texts)
        if not premise or not hypothesis or len(label.split()) != 1:
            raise InputError(
                f"{path}, line {line}: a label of one word and two sentences are needed"
            )
        cut += (len(premise) > LONGEST) + (len(hypothesis) > LONGEST)
        first, second = (
            make_sentence(words[:LONGEST], file=path, line=line)
            for words in (premise, hypothesis)
        )
        pairs.append(SentencePair(first, second, label, (texts[0], texts[1])))
    if not pairs:
        raise InputError(f"{path} holds no pair with a gold label")
    if unlabelled or cut:
        left_out = f"{unlabelled:,} pairs without a gold label are left out"
        note(f"{path}: {left_out}, {cut:,} sentences cut to {LONGEST} words")
    return pairs


def _rows(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """Line, label and texts of each pair."""
    names: list[str] = []
    chosen: list[str] = []
    commas = False
    for number, line in enumerate(read_lines(path), 1):
        where = f"{path}, line {number}"
        if not line.strip():
            continue
        if line.lstrip().startswith("{") and not names:
            with reading(where):
                record = msgspec.json.decode(
                    line
                )  # which also refuses half a surrogate pair
                if not (chosen := _chosen(record)):
                    raise InputError(
                        f"{where}: it needs sentence1, sentence2 and gold_label"
                    )
                label, premise, hypothesis = map(record.get, chosen)
                yield (
                    number,
                    "" if label is None else str(label).strip(),
                    premise,
                    hypothesis,
                )
            continue
        commas = "\t" not in line if not names else commas
        with reading(where):
            columns = next(csv.reader([line])) if commas else line.split("\t")
        if not names:
            names = [name.strip().lower() for name in columns]
            if chosen := _chosen(names):
                continue
            if commas or len(names) != 3 or _HEADER_WORDS & {*names}:
                raise InputError(
                    f"{where}: JSON is needed, or names of columns (sentence1, sentence2, gold_label), or a label, a "
                    "premise and a hypothesis with tabs between them"
                )
            names = chosen = ["label", "premise", "hypothesis"]
        if len(columns) != len(names):
            raise InputError(
                f"{where}: {len(columns)} columns where the first line has {len(names)}"
            )
        cells = dict(zip(names, columns, strict=True))
        label, premise, hypothesis = (unquoted(cells[name].strip()) for name in chosen)
        yield number, label, premise, hypothesis


def _chosen(names: Collection[str]) -> list[str]:
    """The columns of label, premise and hypothesis, by a file's names for them; none
    where one is missing.
    """
    found = [next((each for each in alike if each in names), "") for alike in _NAMES]
    return found if all(found) else []


def unquoted(cell: str) -> str:
    """The text of a cell in which a spreadsheet wrote a text with quotes: within
    quotes, its own ones doubled.
    """
    inner = cell[1:-1]
    quoted = (
        len(cell) > 1
        and cell[0] == cell[-1] == '"'
        and '""' in inner
        and '"' not in inner.replace('""', "")
    )
    return inner.replace('""', '"') if quoted else cell
