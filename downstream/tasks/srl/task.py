"""Semantic role labelling: who does what to whom, for each predicate of a sentence.

The model is the deep tagger of He et al. (2017), with the hyper-parameters published
for ELMo on OntoNotes, on other word vectors. The score is the F1 of `srl-eval.pl`.

Data are CoNLL-2012 documents with gold predicates: words with a sense, which are verbs,
and in PropBank's later releases nouns, adjectives and auxiliaries. An example is a
sentence with all of its predicates, for which its inputs are looked up and projected
once. The published batch of 80 predicates is therefore one of 21 sentences, which have
80 on average in PropBank's English Web Treebank.

Predictions are written in the columns of CoNLL-2005, which `srl-eval.pl` reads: a
predicate's lemma or `-`, then one column of brackets for each predicate.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from downstream.metrics import precision_recall_f1
from downstream.printing import counted
from downstream.probe.task import Task
from downstream.readers.columns import (
    ColumnSentence,
    Span,
    outermost,
)
from downstream.readers.conll2012 import (
    NOTHING,
    Layout,
    arguments_of,
    read_documents,
)
from downstream.settings import (
    SMALL_INPUTS,
    ReaderOptions,
)
from downstream.tasks.srl.model import (
    Proposition,
    Roles,
    SrlProbe,
    SrlSentence,
    SrlSettings,
    propositions_of,
)
from downstream.tasks.srl.scorer import count_arguments
from elmoc.errors import InputError, note


class SrlTask(Task[SrlSentence, Roles]):
    def read(
        self, path: Path, options: ReaderOptions, *, training: bool
    ) -> list[SrlSentence]:
        """Read CoNLL-2012 documents, or PropBank's own release: the sentences that have
        a predicate.

        Of arguments inside others the outer one is read, as a tagger gives a word one
        role. A note counts the others, and the sentences without a predicate, of which
        nothing is learned. Raises `InputError` with the line where predicates, lemmas
        and columns of arguments do not fit; and for a file without predicates.
        """
        sentences: list[SrlSentence] = []
        inner = without = 0
        for document in read_documents(path, arguments=True):
            for columns in document.sentences:
                spans = arguments_of(columns, document)
                kept = [outermost(each) for each in spans]
                inner += sum(map(len, spans)) - sum(map(len, kept))
                propositions = _read_propositions(columns, kept, document.layout)
                without += not propositions
                if propositions:
                    sentence = columns.sentence(document.layout.word)
                    sentences.append(SrlSentence(sentence, propositions))
        if not sentences:
            raise InputError(
                f"{path} has no predicates: "
                "words with a sense (CoNLL-2012) or a lemma (CoNLL-2005) are needed"
            )
        if inner or without:
            note(
                f"{path}: {counted(without, 'sentence')} without a predicate and "
                f"{counted(inner, 'argument')} inside others are left out"
            )
        return sentences

    def labels(self, example: SrlSentence) -> Sequence[str]:
        """The role of each span, `V` among them."""
        return [span.label for span in chain.from_iterable(_spans([example]))]

    def vocabulary(self, train: Sequence[SrlSentence]) -> dict[str, Any]:
        """The roles of `train`."""
        spans = chain.from_iterable(_spans(train))
        return {"labels": sorted({span.label for span in spans})}

    def count(self, example: SrlSentence, prediction: Roles) -> np.ndarray:
        """[right, gold, predicted] arguments."""
        return count_arguments(_spans([example]), prediction)

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        return precision_recall_f1(counts, "argument")

    def write_predictions(
        self, path: Path, examples: Sequence[SrlSentence], predictions: Sequence[Roles]
    ) -> None:
        """The predicted propositions and, in another file (`.gold.props`), the gold
        ones: what srl-eval.pl reads.
        """
        gold = [_spans([example]) for example in examples]
        super().write_predictions(
            path.with_suffix(f".gold{path.suffix}"), examples, gold
        )
        super().write_predictions(path, examples, predictions)

    def format_prediction(self, example: SrlSentence, prediction: Roles) -> str:
        """The columns of CoNLL-2005 for the spans of each proposition, which do not
        overlap.
        """
        lemmas = [NOTHING] * len(example.sentence.words)
        for proposition in example.propositions:
            lemmas[proposition.predicate] = proposition.lemma
        # A column for each proposition, in the order of the predicates' words.
        columns = [lemmas]
        for spans in prediction:
            cells = ["*"] * len(lemmas)
            for label, first, last in spans:
                # A span of one word is `(V*)`.
                cells[first] = f"({label}{cells[first]}"
                cells[last] += ")"
            columns.append(cells)
        rows = zip(*columns, strict=True)
        return "".join("\t".join(row) + "\n" for row in rows) + "\n"


def _read_propositions(
    columns: ColumnSentence, roles: Sequence[Sequence[Span]], layout: Layout
) -> list[Proposition]:
    """A proposition for each word with a sense in the frame files; each of them has a
    column of `roles`.
    """
    senses = enumerate(columns.column(layout.sense))
    predicates = [row for row, cell in senses if cell != NOTHING]
    if len(predicates) != len(roles):
        raise columns.error(
            0,
            f"{len(predicates)} predicates (column {layout.sense}), "
            f"but {len(roles)} columns of arguments",
        )
    propositions = []
    for place, spans in zip(predicates, roles, strict=True):
        # A lemma of several words is one cell in the columns of CoNLL-2005.
        lemma = "_".join(columns.rows[place][layout.lemma].split())
        if lemma in ("", NOTHING):
            raise columns.error(
                place,
                f"the predicate has a sense, but no lemma (column {layout.lemma})",
            )
        propositions.append(Proposition(place, lemma, spans))
    return propositions


def _spans(examples: Sequence[SrlSentence]) -> Roles:
    """The spans of each of the propositions of sentences."""
    return [proposition.spans for proposition in propositions_of(examples)]


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
        **SMALL_INPUTS,
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
