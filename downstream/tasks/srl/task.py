"""Semantic role labelling: who does what to whom, for each predicate of a sentence.

The deep tagger of He et al. (2017) on CoNLL-2012 documents with gold predicates;
hyper-parameters are those published for ELMo on OntoNotes, the score is the F1 of
`srl-eval.pl`. An example is a sentence with all of its predicates, for which its inputs
are looked up and projected once. The published batch of 80 predicates is therefore one
of 21 sentences, which have 80 on average in PropBank's English Web Treebank.

Predicates are the words with a sense: verbs, and in PropBank's later releases nouns,
adjectives and auxiliaries. Predictions are written in the columns of CoNLL-2005, which
`srl-eval.pl` reads: a predicate's lemma or `-`, then one column of brackets for each
predicate.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from downstream.metrics import label_table, precision_recall_f1
from downstream.printing import counted, note
from downstream.probe.task import Task
from downstream.readers.columns import ColumnSentence, Span, outermost
from downstream.readers.conll2012 import (
    LEMMA,
    NOTHING,
    SENSE,
    WORD,
    arguments_of,
    read_documents,
)
from downstream.settings import SMALL_MIX_RATE, ReaderOptions
from downstream.tasks.srl.model import (
    Proposition,
    Roles,
    SrlProbe,
    SrlSentence,
    SrlSettings,
)
from downstream.tasks.srl.scorer import count_arguments, count_roles
from elmoc.errors import InputError


def read_propositions(path: Path) -> list[SrlSentence]:
    """The sentences of a file of CoNLL-2012 documents, or of PropBank's own release,
    that have a predicate.

    Of arguments inside others the outer one is read, as a tagger gives a word one role.
    A note counts the others, and the sentences without a predicate, of which nothing is
    learned. Raises `InputError` with the line where predicates, lemmas and columns of
    arguments do not fit; and for a file without predicates.
    """
    sentences = list[SrlSentence]()
    inner = 0
    without = 0
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
        raise InputError(
            f"{path} has no predicates: words with a sense in column {SENSE} are needed"
        )
    if inner or without:
        left_out = f"{counted(without, 'sentence')} without a predicate and {counted(inner, 'argument')} inside others"
        note(f"{path}: {left_out} are left out")
    return sentences


def format_propositions(sentence: SrlSentence, spans: Sequence[Sequence[Span]]) -> str:
    """The columns of CoNLL-2005 for the spans of each proposition, which do not
    overlap.
    """
    length = len(sentence.sentence.words)
    lemmas = [NOTHING] * length
    for proposition in sentence.propositions:
        lemmas[proposition.predicate] = proposition.lemma
    rows = zip(lemmas, *(_brackets(one, length) for one in spans), strict=True)
    return "".join("\t".join(row) + "\n" for row in rows) + "\n"


def _propositions(
    columns: ColumnSentence, roles: Sequence[Sequence[Span]]
) -> tuple[Proposition, ...]:
    """A proposition for each word with a sense in the frame files; each of them has a
    column of `roles`.
    """
    predicates = [
        row for row, cell in enumerate(columns.column(SENSE)) if cell != NOTHING
    ]
    if len(predicates) != len(roles):
        what = f"{len(predicates)} predicates (column {SENSE}), but {len(roles)} columns of arguments"
        raise columns.error(0, what)
    lemmas = ["_".join(columns.rows[place][LEMMA].split()) for place in predicates]
    for place, lemma in zip(predicates, lemmas, strict=True):
        if lemma in ("", NOTHING):
            raise columns.error(
                place, f"the predicate has a sense, but no lemma (column {LEMMA})"
            )
    return tuple(
        Proposition(*each)
        for each in zip(predicates, lemmas, map(tuple, roles), strict=True)
    )


def _brackets(spans: Sequence[Span], length: int) -> list[str]:
    cells = ["*"] * length
    for label, first, last in spans:
        cells[first] = f"({label}{cells[first]}"
        cells[last] += ")"
    return cells


class SrlTask(Task[SrlSentence, Roles]):
    def read(
        self, path: Path, options: ReaderOptions, *, training: bool
    ) -> list[SrlSentence]:
        """Read a file of CoNLL-2012 documents: its sentences with a predicate."""
        return read_propositions(path)

    def describe(self, examples: Sequence[SrlSentence]) -> str:
        propositions = [one for example in examples for one in example.propositions]
        tokens = sum(len(example.sentence.words) for example in examples)
        arguments = count_arguments(
            [one.spans for one in propositions], [()] * len(propositions)
        )[1]
        counts = (
            counted(len(examples), "sentence"),
            counted(tokens, "token"),
            counted(len(propositions), "predicate"),
        )
        return ", ".join([*counts, counted(int(arguments), "argument")])

    def vocabulary(self, train: Sequence[SrlSentence]) -> dict[str, Any]:
        """The roles of `train`."""
        return {
            "labels": sorted(
                {
                    span.label
                    for each in train
                    for one in each.propositions
                    for span in one.spans
                }
            )
        }

    def count(self, example: SrlSentence, prediction: Roles) -> np.ndarray:
        """[right, gold, predicted] arguments."""
        return count_arguments([one.spans for one in example.propositions], prediction)

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        return precision_recall_f1(counts, "argument")

    def details(
        self, examples: Sequence[SrlSentence], predictions: Sequence[Roles]
    ) -> str:
        """Precision, recall and F1 of each role."""
        gold = [one.spans for example in examples for one in example.propositions]
        return label_table(
            count_roles(gold, [spans for roles in predictions for spans in roles])
        )

    def write_predictions(
        self, path: Path, examples: Sequence[SrlSentence], predictions: Sequence[Roles]
    ) -> None:
        """The predicted propositions and, in another file (`.gold.props`), the gold
        ones: what srl-eval.pl reads.
        """
        gold = [[one.spans for one in example.propositions] for example in examples]
        super().write_predictions(
            path.with_suffix(f".gold{path.suffix}"), examples, gold
        )
        super().write_predictions(path, examples, predictions)

    def format_prediction(self, example: SrlSentence, prediction: Roles) -> str:
        return format_propositions(example, prediction)


PUBLISHED = SrlSettings(
    learning_rate=1.0,
    optimiser="adadelta",
    gradient_value=1.0,
    mix_l2=0.001,
    batch_size=21,
    epochs=500,
    patience=200,
)

TASK = SrlTask(
    name="srl",
    metric="argument F1",
    unit="sentences",
    item="sentences",
    suffix=".props",
    model=SrlProbe,
    published=PUBLISHED,
    small=replace(
        PUBLISHED,
        mix_rate=SMALL_MIX_RATE,
        learning_rate=2e-3,
        optimiser="adam",
        decay=0.9,
        batch_size=32,
        epochs=5,
        patience=5,
        hidden_size=200,
        layers=2,
    ),
)
