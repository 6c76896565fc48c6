"""Labelled pairs of sentences, from SNLI's JSON lines, from tab-separated text, or from
what data hubs export.

JSON lines: an object a line. Tab- or comma-separated: the first line names the columns;
without such a line, the three columns are label, premise, hypothesis, with tabs between
them. Names are `gold_label` or `label`, `sentence1` or `premise`, `sentence2` or
`hypothesis`; others are ignored. Texts are tokenised by `elmoc.text.tokenizer`, which
leaves tokenised text nearly as it is.
"""

import csv
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
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

# The names of label, premise and hypothesis.
_NAMES = (
    ("gold_label", "label"),
    ("sentence1", "premise"),
    ("sentence2", "hypothesis"),
)
# More names of columns: a first line that holds some is a heading, and no pair.
_OTHERS = ("text", "text1", "text2", "sentence", "pairid", "index")
# The columns of a table without a heading.
_COLUMNS = ("label", "premise", "hypothesis")


@dataclass(frozen=True)
class SentencePair:
    """Two sentences and the label of the pair.

    texts: the two as the file has them.
    """

    premise: TaskSentence
    hypothesis: TaskSentence
    label: str
    texts: tuple[str, str]


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
    for line, label, *texts in rows:
        if label.lower() in UNLABELLED:
            unlabelled += 1
            continue
        sentences = []
        with reading(f"{path}, line {line}"):
            for text in texts:
                words = tokenise_sentence(text)
                cut += len(words) > LONGEST
                kept = words[:LONGEST]
                sentences.append(make_sentence(kept, file=path, line=line))
            first, second = sentences
            if not (first.words and second.words and len(label.split()) == 1):
                raise InputError("a label of one word and two sentences are needed")
        pairs.append(SentencePair(first, second, label, (texts[0], texts[1])))
    if not pairs:
        raise InputError(f"{path} holds no pair with a gold label")
    if unlabelled or cut:
        left_out = f"{unlabelled:,} pairs without a gold label are left out"
        note(f"{path}: {left_out}, {cut:,} sentences cut to {LONGEST} words")
    return pairs


def _rows(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """Line, label ("" where there is none) and texts of each pair."""
    # Of the columns, where the file is a table.
    names: Sequence[str] = ()
    commas = False
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        with reading(f"{path}, line {number}"):
            if line.lstrip().startswith("{") and not names:
                # It refuses half a surrogate pair, too.
                cells = msgspec.json.decode(line)
            else:
                if not names:
                    commas = "\t" not in line
                columns = next(csv.reader([line])) if commas else line.split("\t")
                if not names:
                    names = _heading(columns, commas)
                    if names:
                        continue
                    names = _COLUMNS
                if len(columns) != len(names):
                    raise InputError(
                        f"{len(columns)} columns where the first line has {len(names)}"
                    )
                texts = [unquoted(column.strip()) for column in columns]
                cells = dict(zip(names, texts, strict=True))
            chosen = _chosen(cells)
            if not chosen:
                raise InputError("sentence1, sentence2 and gold_label are needed")
            label, premise, hypothesis = [cells[name] for name in chosen]
        yield number, "" if label is None else str(label).strip(), premise, hypothesis


def _heading(columns: Sequence[str], commas: bool) -> list[str]:
    """The names of the columns in the first line of a table; none where it is a pair.

    Raises:
        InputError: neither names nor a pair.
    """
    names = [name.strip().lower() for name in columns]
    if _chosen(names):
        return names
    known = set(_OTHERS).union(*_NAMES)
    if commas or len(names) != 3 or known & set(names):
        raise InputError(
            "JSON is needed, or names of columns (sentence1, sentence2, gold_label), "
            "or a label, a premise and a hypothesis with tabs between them"
        )
    return []


def _chosen(names: Collection[str]) -> list[str]:
    """The columns of label, premise and hypothesis, by a file's names for them; none
    where one is missing.
    """
    chosen = []
    for alike in _NAMES:
        chosen += [name for name in alike if name in names][:1]
    return chosen if len(chosen) == len(_NAMES) else []


def unquoted(cell: str) -> str:
    """The text of a cell in which a spreadsheet wrote a text with quotes: within
    quotes, its own ones doubled.
    """
    inner = cell[1:-1]
    is_quoted = len(cell) > 1 and cell[0] == cell[-1] == '"'
    has_pairs = '""' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_quoted and has_pairs else cell
