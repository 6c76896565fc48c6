"""Sentiment of film reviews in five classes (SST-5): how good a film is, by a sentence about it.

The trees of the Stanford Sentiment Treebank (Socher et al. 2013) have a label from 0 (very negative) to 4 (very
positive) at every node. The probe trains on the phrases of all nodes and is scored on whole sentences; its model is
the biattentive classification network with the hyper-parameters published for ELMo.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from downstream.inputs.sentence import Sentence
from downstream.inputs.settings import SMALL_MIX_RATE
from downstream.metrics import ratio
from downstream.probe.settings import ReaderOptions
from downstream.probe.task import Task
from downstream.readers.trees import read_trees
from downstream.tasks.sst5.model import CLASSES, Phrase, Sst5Probe, Sst5Settings
from elmoc.settings import counted, setting


@dataclass(frozen=True, kw_only=True)
class Sst5ReaderOptions(ReaderOptions):
    """Which phrases to train on."""

    subtrees: str = setting(
        "all",
        choices=("all", "distinct", "none"),
        help="train on the phrases of all nodes of the trees, as published; on each distinct phrase with its label "
        "once, whatever the number of its places (half the phrases, 13% fewer words); or on none but the whole "
        "sentences",
    )


class Sst5Task(Task[Phrase, list[float]]):
    def read(self, path: Path, options: ReaderOptions, *, training: bool) -> list[Phrase]:
        """Read trees: whole sentences, each before its phrases, which training reads too."""
        assert isinstance(options, Sst5ReaderOptions)
        return [
            Phrase(
                Sentence(sentence.words[node.begin : node.end], sentence.file, sentence.line),
                node.label,
                root=not place,
            )
            for sentence, nodes in read_trees(path)
            for place, node in enumerate(nodes if training and options.subtrees != "none" else nodes[:1])
        ]

    def training_examples(self, examples: list[Phrase], options: ReaderOptions) -> list[Phrase]:
        """Leave out the phrases that stand elsewhere, too, where the options say so."""
        assert isinstance(options, Sst5ReaderOptions)
        return distinct_phrases(examples) if options.subtrees == "distinct" else examples

    def describe(self, examples: Sequence[Phrase]) -> str:
        roots = [example for example in examples if example.root]
        labels = np.bincount([root.label for root in roots], minlength=CLASSES)
        tokens = [sum(len(phrase.sentence.words) for phrase in phrases) for phrases in (roots, examples)]
        text = f"{counted(len(roots), 'sentence')}, {counted(tokens[0], 'token')}, labels 0 to 4: "
        text += " ".join(map(str, labels))
        if len(examples) == len(roots):
            return text
        return f"{text}; {counted(len(examples), 'phrase')}, {counted(tokens[1], 'token')}"

    def count(self, example: Phrase, prediction: list[float]) -> np.ndarray:
        """Whether the example is right, and 1."""
        return np.array([predicted_class(prediction) == example.label, 1], dtype=np.float64)

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        return {self.metric: ratio(counts[..., 0], counts[..., 1])}

    def format_prediction(self, example: Phrase, prediction: list[float]) -> str:
        """JSON: gold and predicted label, the probabilities of the five classes, and the text."""
        record = {
            "gold": example.label,
            "predicted": predicted_class(prediction),
            "probabilities": [round(probability, 6) for probability in prediction],
            "text": " ".join(example.sentence.words),
        }
        return json.dumps(record, ensure_ascii=False) + "\n"


def distinct_phrases(phrases: Sequence[Phrase]) -> list[Phrase]:
    """The first of the phrases with the same words and label, in their order."""
    first: dict[tuple[tuple[str, ...], int], Phrase] = {}
    for phrase in phrases:
        first.setdefault((phrase.sentence.words, phrase.label), phrase)
    return list(first.values())


def predicted_class(probabilities: Sequence[float]) -> int:
    """The class of the highest probability."""
    return max(range(len(probabilities)), key=probabilities.__getitem__)


PUBLISHED = Sst5Settings(
    learning_rate=1e-3,
    gradient_norm=5.0,
    batch_size=100,
    epochs=40,
    patience=5,
)

TASK = Sst5Task(
    name="sst5",
    metric="accuracy",
    unit="phrases",
    item="sentences",
    suffix=".jsonl",
    reader=Sst5ReaderOptions(),
    model=Sst5Probe,
    published=PUBLISHED,
    small=replace(
        PUBLISHED,
        mix_rate=SMALL_MIX_RATE,
        decay=0.95,
        epochs=2,
        patience=2,
        feedforward_size=100,
        hidden_size=100,
        first_output_size=200,
        second_output_size=100,
        pool_size=2,
    ),
)
