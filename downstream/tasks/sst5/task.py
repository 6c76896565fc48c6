"""Sentiment of film reviews in five classes (SST-5): how good a film is, by a sentence
about it.

The trees of the Stanford Sentiment Treebank (Socher et al. 2013) have a label from 0
(very negative) to 4 (very positive) at every node. The probe trains on the phrases of
all nodes and is scored on whole sentences; its model is the biattentive classification
network of McCann et al. (2017) with the hyper-parameters published for ELMo.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor

from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sentence import TaskSentence
from downstream.metrics import ratio
from downstream.printing import counted
from downstream.probe.task import Probe, Task, require_numbers
from downstream.settings import (
    SMALL_MIX_RATE,
    ReaderOptions,
    TrainingSettings,
)
from downstream.tasks.sst5.network import BiattentiveClassifier, Sst5Settings
from downstream.tasks.sst5.trees import read_trees


@dataclass(frozen=True)
class Phrase:
    """The words under a node of a tree and the node's label; `root` where they are the
    whole sentence.
    """

    sentence: TaskSentence
    label: int
    root: bool


class Sst5Probe(Probe[Phrase, list[float]]):
    """Puts a phrase into one of the classes. A prediction is the probabilities of the
    classes.

    network: made of `input_size` and `settings`, from inputs [B, T, D] and lengths [B]
    to scores [B, C].
    """

    network: type[torch.nn.Module] = BiattentiveClassifier

    def __init__(self, *, inputs: ProbeInputs, settings: TrainingSettings) -> None:
        super().__init__()
        self.inputs = inputs
        self.classifier = self.network(input_size=inputs.size, settings=settings)

    def logits(self, examples: Sequence[Phrase]) -> Tensor:
        """float32 [B, C]."""
        logits: Tensor = self.classifier(
            *self.inputs([example.sentence for example in examples])
        )
        return logits

    def loss(self, examples: Sequence[Phrase]) -> Tensor:
        """Cross-entropy, the mean over the batch."""
        logits = self.logits(examples)
        labels = torch.tensor(
            [example.label for example in examples], device=logits.device
        )  # [B]
        return torch.nn.functional.cross_entropy(logits, labels)

    def predict(self, examples: Sequence[Phrase]) -> list[list[float]]:
        """The probabilities of the classes, one list an example."""
        return require_numbers(self.logits(examples)).softmax(dim=1).tolist()


@dataclass(frozen=True, kw_only=True)
class Sst5ReaderOptions(ReaderOptions):
    """Which phrases to train on."""

    subtrees: Annotated[
        Literal["all", "distinct", "none"],
        Meta(
            description="train on the phrases of all nodes of the trees, as "
            "published; on each distinct phrase with its label once, "
            "however often it occurs (half the phrases, 13% fewer "
            "words); or on whole sentences alone"
        ),
    ] = "all"


class Sst5Task(Task[Phrase, list[float]]):
    def read(
        self, path: Path, options: ReaderOptions, *, training: bool
    ) -> list[Phrase]:
        """Read trees: whole sentences, each before its phrases, which training reads
        too.
        """
        assert isinstance(options, Sst5ReaderOptions)
        return [
            Phrase(
                TaskSentence(
                    sentence.words[node.begin : node.end], sentence.file, sentence.line
                ),
                node.label,
                root=not place,
            )
            for sentence, nodes in read_trees(path)
            for place, node in enumerate(
                nodes if training and options.subtrees != "none" else nodes[:1]
            )
        ]

    def training_examples(
        self, examples: list[Phrase], options: ReaderOptions
    ) -> list[Phrase]:
        """Leave out the phrases that stand elsewhere, too, where the options say so."""
        assert isinstance(options, Sst5ReaderOptions)
        first: dict[tuple[tuple[str, ...], int], Phrase] = {}
        for phrase in examples:
            first.setdefault((phrase.sentence.words, phrase.label), phrase)
        return list(first.values()) if options.subtrees == "distinct" else examples

    def describe(self, examples: Sequence[Phrase]) -> str:
        roots = [example for example in examples if example.root]
        labels = np.bincount([root.label for root in roots])
        tokens = [
            sum(len(phrase.sentence.words) for phrase in phrases)
            for phrases in (roots, examples)
        ]
        text = f"{counted(len(roots), self.item.removesuffix('s'))}, {counted(tokens[0], 'token')}, labels from 0: "
        text += " ".join(map(str, labels))
        if len(examples) == len(roots):
            return text
        return (
            f"{text}; {counted(len(examples), 'phrase')}, {counted(tokens[1], 'token')}"
        )

    def count(self, example: Phrase, prediction: list[float]) -> np.ndarray:
        """Whether the example is right, and 1."""
        return np.array(
            [predicted_class(prediction) == example.label, 1], dtype=np.float64
        )

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        return {self.metric: ratio(counts[..., 0], counts[..., 1])}

    def format_prediction(self, example: Phrase, prediction: list[float]) -> str:
        """JSON: gold and predicted label, the probabilities of the five classes, and
        the text.
        """
        record = {
            "gold": example.label,
            "predicted": predicted_class(prediction),
            "probabilities": [round(probability, 6) for probability in prediction],
            "text": " ".join(example.sentence.words),
        }
        return json.dumps(record, ensure_ascii=False) + "\n"


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
