"""Propositions of semantic role labelling: how they are read, coded as tags, and written.

A proposition is a predicate and the spans of words that fill its roles. It is read from CoNLL-2012 documents, whose
predicates are the words with a sense (verbs, and in PropBank's later releases nouns, adjectives and auxiliaries), and
written in the columns of CoNLL-2005, which `srl-eval.pl` reads: a predicate's lemma or `-`, then one column of
brackets for each predicate.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from seqeval.metrics.sequence_labeling import get_entities

from downstream.inputs.sentence import Sentence, make_sentence
from downstream.readers.conll2012 import LEMMA, NOTHING, SENSE, WORD, DocumentSentence, Span, read_documents
from elmoc.errors import InputError


@dataclass(frozen=True)
class Proposition:
    """A predicate's word and lemma, and the spans of its roles by their first words, `V` among them."""

    predicate: int
    lemma: str
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class SrlSentence:
    """A sentence with a proposition for each of its predicates, one at least.

    before  the numbers of words of the sentences without a predicate between the previous `SrlSentence` and this one:
            nothing is learned from them, and they are written with predictions
    after   the same for those after the last one of the file
    """

    sentence: Sentence
    propositions: tuple[Proposition, ...]
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


def read_propositions(path: Path) -> list[SrlSentence]:
    """The sentences of a file of CoNLL-2012 documents that have a predicate.

    Raises `InputError` with the line where predicates, lemmas and columns of arguments do not fit, or spans of
    a proposition overlap; and for a file without predicates.
    """
    sentences: list[SrlSentence] = []
    without: list[int] = []
    for document in read_documents(path):
        for rows in document.sentences:
            propositions = _propositions(rows)
            if propositions:
                sentence = make_sentence(rows.column(WORD), file=path, line=rows.lines[0])
                sentences.append(SrlSentence(sentence, propositions, before=tuple(without)))
                without = []
            else:
                without.append(len(rows.rows))
    if not sentences:
        raise InputError(f"{path} has no predicates: words with a sense in column 7 are needed")
    return [*sentences[:-1], replace(sentences[-1], after=tuple(without))]


def spans_to_bio(spans: Sequence[Span], length: int) -> list[str]:
    """BIO tags of a sentence of `length` words for spans that do not overlap."""
    tags = ["O"] * length
    for label, first, last in spans:
        tags[first : last + 1] = [f"B-{label}", *[f"I-{label}"] * (last - first)]
    return tags


def bio_to_spans(tags: list[str]) -> tuple[Span, ...]:
    """The spans of BIO tags, by their first words."""
    return tuple(Span(*entity) for entity in get_entities(tags))


def format_propositions(sentence: SrlSentence, spans: Sequence[Sequence[Span]]) -> str:
    """The columns of CoNLL-2005 for the spans of each proposition, which do not overlap.

    The sentences without predicates stand around them, as in the file that was read.
    """
    length = len(sentence.sentence.words)
    lemmas = [NOTHING] * length
    for proposition in sentence.propositions:
        lemmas[proposition.predicate] = proposition.lemma
    rows = zip(lemmas, *(_brackets(one, length) for one in spans), strict=True)
    own = "".join("\t".join(row) + "\n" for row in rows)
    before, after = ("".join(f"{NOTHING}\n" * each + "\n" for each in of) for of in (sentence.before, sentence.after))
    return f"{before}{own}\n{after}"


def _propositions(rows: DocumentSentence) -> tuple[Proposition, ...]:
    """A proposition for each word with a sense in the frame files; each of them has a column of arguments."""
    predicates, arguments = [row for row, cell in enumerate(rows.column(SENSE)) if cell != NOTHING], rows.arguments()
    if len(predicates) != len(arguments):
        raise rows.error(0, f"{len(predicates)} predicates (column 7), but {len(arguments)} columns of arguments")
    propositions = []
    for place, spans in zip(predicates, arguments, strict=True):
        lemma = "_".join(rows.rows[place][LEMMA].split())
        if lemma in ("", NOTHING):
            raise rows.error(place, "the predicate has a sense, but no lemma (column 6)")
        for left, right in pairwise(spans):
            if right.first <= left.last:
                raise rows.error(right.first, f"{left.label} and {right.label} of the predicate {lemma} overlap")
        propositions.append(Proposition(place, lemma, tuple(spans)))
    return tuple(propositions)


def _brackets(spans: Sequence[Span], length: int) -> list[str]:
    cells = ["*"] * length
    for label, first, last in spans:
        cells[first] = f"({label}{cells[first]}"
        cells[last] += ")"
    return cells
