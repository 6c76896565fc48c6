"""Semantic role labelling: who does what to whom, for each predicate of a sentence.

The deep tagger of He et al. (2017) on CoNLL-2012 documents with gold predicates; hyper-parameters are those published
for ELMo on OntoNotes, the score is the F1 of `srl-eval.pl`. An example is a sentence with all of its predicates, for
which its inputs are looked up and projected once. The published batch of 80 predicates is therefore one of 21
sentences, which have 80 on average in PropBank's English Web Treebank.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from downstream.metrics import count_arguments, count_roles, label_table, precision_recall_f1
from downstream.probe.task import Task
from downstream.settings import SMALL_MIX_RATE, ReaderOptions
from downstream.tasks.srl.model import Roles, SrlProbe, SrlSettings
from downstream.tasks.srl.propositions import SrlSentence, format_propositions, read_propositions
from elmoc.settings import counted


class SrlTask(Task[SrlSentence, Roles]):
    def read(self, path: Path, options: ReaderOptions, *, training: bool) -> list[SrlSentence]:
        """Read a file of CoNLL-2012 documents: its sentences with a predicate."""
        return read_propositions(path)

    def describe(self, examples: Sequence[SrlSentence]) -> str:
        propositions = [one for example in examples for one in example.propositions]
        tokens = sum(len(example.sentence.words) for example in examples)
        arguments = count_arguments([one.spans for one in propositions], [()] * len(propositions))[1]
        counts = (counted(len(examples), "sentence"), counted(tokens, "token"), counted(len(propositions), "predicate"))
        return ", ".join([*counts, counted(int(arguments), "argument")])

    def vocabulary(self, train: Sequence[SrlSentence]) -> dict[str, Any]:
        """The roles of `train`."""
        return {"labels": sorted({span.label for each in train for one in each.propositions for span in one.spans})}

    def count(self, example: SrlSentence, prediction: Roles) -> np.ndarray:
        """[right, gold, predicted] arguments."""
        return count_arguments([one.spans for one in example.propositions], prediction)

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        return precision_recall_f1(counts, "argument")

    def details(self, examples: Sequence[SrlSentence], predictions: Sequence[Roles]) -> str:
        """Precision, recall and F1 of each role."""
        gold = [one.spans for example in examples for one in example.propositions]
        return label_table(count_roles(gold, [spans for roles in predictions for spans in roles]))

    def write_predictions(self, path: Path, examples: Sequence[SrlSentence], predictions: Sequence[Roles]) -> None:
        """The predicted propositions and, in another file (`.gold.props`), the gold ones: what srl-eval.pl reads."""
        gold = [[one.spans for one in example.propositions] for example in examples]
        super().write_predictions(path.with_suffix(f".gold{path.suffix}"), examples, gold)
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
