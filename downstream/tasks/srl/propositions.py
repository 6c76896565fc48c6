"""Propositions of semantic role labelling: how they are read, coded as tags, and written.

A proposition is a predicate and the spans of words that fill its roles. It is read from CoNLL-2012 documents, whose
predicates are the words with a sense (verbs, and in PropBank's later releases nouns, adjectives and auxiliaries), and
written in the columns of CoNLL-2005, which `srl-eval.pl` reads: a predicate's lemma or `-`, then one column of
brackets for each predicate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seqeval.metrics.sequence_labeling import get_entities

from downstream.inputs.sentence import Sentence
from downstream.printing import say
from downstream.readers.columns import ColumnSentence, Span, outermost
from downstream.readers.conll2012 import LEMMA, NOTHING, SENSE, WORD, arguments_of, read_documents
from elmoc.errors import InputError
from elmoc.settings import counted


@dataclass(frozen=True)
class Proposition:
    """A predicate's word and lemma, and the spans of its roles by their first words, `V` among them."""

    predicate: int
    lemma: str
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class SrlSentence:
    """A sentence with a proposition for each of its predicates, one at least."""

    sentence: Sentence
    propositions: tuple[Proposition, ...]


def read_propositions(path: Path) -> list[SrlSentence]:
    """The sentences of a file of CoNLL-2012 documents, or of PropBank's own release, that have a predicate.

    Of arguments inside others the outer one is read, as a tagger gives a word one role. A note counts the others, and
    the sentences without a predicate, of which nothing is learned.
    Raises `InputError` with the line where predicates, lemmas and columns of arguments do not fit; and for a file
    without predicates.
    """
    sentences, inner, without = list[SrlSentence](), 0, 0
    for document in read_documents(path, arguments=True):
        for columns in document.sentences:
            spans = arguments_of(columns, document)
            kept = [outermost(each) for each in spans]
            inner += sum(map(len, spans)) - sum(map(len, kept))
            if propositions := _propositions(columns, kept):
                sentences.append(SrlSentence(columns.sentence(WORD), propositions))
            else:
                without += 1
    if not sentences:
        raise InputError(f"{path} has no predicates: words with a sense in column {SENSE} are needed")
    if inner or without:
        left_out = f"{counted(without, 'sentence')} without a predicate and {counted(inner, 'argument')} inside others"
        say(f"{path}: {left_out} are left out", note=True)
    return sentences


def bio_to_spans(tags: list[str]) -> tuple[Span, ...]:
    """The spans of BIO tags, by their first words."""
    return tuple(Span(*entity) for entity in get_entities(tags))


def format_propositions(sentence: SrlSentence, spans: Sequence[Sequence[Span]]) -> str:
    """The columns of CoNLL-2005 for the spans of each proposition, which do not overlap."""
    length = len(sentence.sentence.words)
    lemmas = [NOTHING] * length
    for proposition in sentence.propositions:
        lemmas[proposition.predicate] = proposition.lemma
    rows = zip(lemmas, *(_brackets(one, length) for one in spans), strict=True)
    return "".join("\t".join(row) + "\n" for row in rows) + "\n"


def _propositions(columns: ColumnSentence, roles: Sequence[Sequence[Span]]) -> tuple[Proposition, ...]:
    """A proposition for each word with a sense in the frame files; each of them has a column of `roles`."""
    predicates = [row for row, cell in enumerate(columns.column(SENSE)) if cell != NOTHING]
    if len(predicates) != len(roles):
        what = f"{len(predicates)} predicates (column {SENSE}), but {len(roles)} columns of arguments"
        raise columns.error(0, what)
    lemmas = ["_".join(columns.rows[place][LEMMA].split()) for place in predicates]
    for place, lemma in zip(predicates, lemmas, strict=True):
        if lemma in ("", NOTHING):
            raise columns.error(place, f"the predicate has a sense, but no lemma (column {LEMMA})")
    return tuple(Proposition(*each) for each in zip(predicates, lemmas, map(tuple, roles), strict=True))


def _brackets(spans: Sequence[Span], length: int) -> list[str]:
    cells = ["*"] * length
    for label, first, last in spans:
        cells[first] = f"({label}{cells[first]}"
        cells[last] += ")"
    return cells
