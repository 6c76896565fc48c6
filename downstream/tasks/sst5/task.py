"""Sentiment of film reviews in five classes (SST-5): how good does a sentence say that a film is?

The trees of the Stanford Sentiment Treebank (Socher et al. 2013) have a label from 0 (very negative) to 4 (very
positive) at every node. The probe trains on the phrases of all nodes and is scored on whole sentences; its model is
the biattentive classification network with the hyper-parameters published for ELMo.
"""

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sentence import Sentence, make_sentence
from downstream.probe.settings import TrainingSettings, dropout_field
from downstream.probe.task import Probe, Task
from downstream.tasks.sst5.model import BiattentiveClassifier
from elmoc.errors import InputError
from elmoc.files import atomic_path, read_lines

CLASSES = 5
NEUTRAL = 2
LABELS = {str(label): label for label in range(CLASSES)}

_TOKEN = re.compile(r"\([^ \t()]*|\)|[^ \t()]+")
"""A bracket that opens and the label behind it, a bracket that closes, or a word (no-break spaces stay inside)."""


@dataclass(frozen=True)
class Phrase:
    """The words under a node of a tree and the node's label; `root` where they are the whole sentence."""

    sentence: Sentence
    label: int
    root: bool


@dataclass(frozen=True, kw_only=True)
class Sst5Settings(TrainingSettings):
    """Hyper-parameters of the probe."""

    feedforward_size: int = field(metadata={"help": "units of the feed-forward layer before the LSTMs"})
    hidden_size: int = field(metadata={"help": "units of each LSTM, each direction"})
    first_output_size: int = field(metadata={"help": "units of the first maxout layer"})
    second_output_size: int = field(metadata={"help": "units of the second maxout layer"})
    pool_size: int = field(metadata={"help": "linear functions of which a maxout unit is the maximum"})
    embedding_dropout: float = dropout_field("dropout on the inputs")
    feedforward_dropout: float = dropout_field("dropout after the feed-forward layer")
    integrator_dropout: float = dropout_field("dropout after the pooling")
    first_output_dropout: float = dropout_field("dropout after the first maxout layer")
    second_output_dropout: float = dropout_field("dropout after the second maxout layer")


class Sst5Probe(Probe[Phrase, list[float]]):
    """Puts a phrase into one of the five classes. A prediction is the probabilities of the classes."""

    def __init__(self, *, inputs: ProbeInputs, classifier: BiattentiveClassifier) -> None:
        super().__init__()
        self.inputs = inputs
        self.classifier = classifier

    def logits(self, examples: Sequence[Phrase]) -> Tensor:
        """float32 [B, 5]."""
        return self.classifier(*self.inputs([example.sentence for example in examples]))

    def loss(self, examples: Sequence[Phrase]) -> Tensor:
        """Cross-entropy, the mean over the batch."""
        logits = self.logits(examples)
        labels = torch.tensor([example.label for example in examples], device=logits.device)  # [B]
        return torch.nn.functional.cross_entropy(logits, labels)

    def predict(self, examples: Sequence[Phrase]) -> list[list[float]]:
        """The probabilities of the five classes, one list an example."""
        return self.logits(examples).softmax(dim=1).tolist()


class Sst5Task(Task[Phrase, list[float]]):
    """Reader, model and metric of SST-5."""

    def add_reader_options(self, parser: argparse.ArgumentParser) -> None:
        """`--subtrees`: which phrases to train on."""
        parser.add_argument(
            "--subtrees",
            choices=("all", "distinct", "none"),
            default="all",
            help="train on the phrases of all nodes of the trees, as published; on each distinct phrase with its label "
            "once, whatever the number of its places (half the phrases, 13%% fewer words); or on none but the whole "
            "sentences (default: all)",
        )

    def read(self, path: Path, options: argparse.Namespace, *, training: bool) -> list[Phrase]:
        """Read trees of the Penn Treebank's form, one a line: whole sentences, and phrases too for training.

        The sentence comes before its phrases.
        """
        phrases = []
        for number, line in enumerate(read_lines(path), 1):
            if not line.strip():
                continue
            try:
                words, nodes = parse_tree(line)
            except ValueError as error:
                raise InputError(
                    f"{path}, line {number}: {error}; a tree with a label from 0 to 4 at every node is expected, "
                    "like (3 (2 This) (3 (3 works) (2 .)))"
                ) from None
            sentence = make_sentence(words, file=path, line=number)
            if not training or options.subtrees == "none":
                nodes = nodes[:1]
            for node, (begin, end, label) in enumerate(nodes):
                part = Sentence(sentence.words[begin:end], sentence.file, sentence.line)
                phrases.append(Phrase(part, label, root=node == 0))
        if not phrases:
            raise InputError(f"{path} holds no trees: one a line is expected, like (3 (2 This) (3 (3 works) (2 .)))")
        return distinct_phrases(phrases) if training and options.subtrees == "distinct" else phrases

    def sentences(self, example: Phrase) -> list[Sentence]:
        """One sentence an example."""
        return [example.sentence]

    def describe(self, examples: Sequence[Phrase]) -> str:
        """Counts of sentences and of their labels, and of all the phrases."""
        roots = [example for example in examples if example.root]
        labels = np.bincount([root.label for root in roots], minlength=CLASSES)
        tokens = [sum(len(phrase.sentence.words) for phrase in phrases) for phrases in (roots, examples)]
        text = f"{len(roots):,} sentences, {tokens[0]:,} tokens, labels 0 to 4: {' '.join(map(str, labels))}"
        if len(examples) == len(roots):
            return text
        return f"{text}; {len(examples):,} phrases, {tokens[1]:,} tokens"

    def vocabulary(self, train: Sequence[Phrase]) -> dict[str, Any]:
        """Nothing: the classes are the same in all data."""
        return {}

    def build(
        self, *, vocabulary: dict[str, Any], inputs: ProbeInputs, settings: TrainingSettings
    ) -> Probe[Phrase, list[float]]:
        """A biattentive classification network."""
        assert isinstance(settings, Sst5Settings)
        classifier = BiattentiveClassifier(
            input_size=inputs.size,
            classes=CLASSES,
            feedforward_size=settings.feedforward_size,
            hidden_size=settings.hidden_size,
            output_sizes=(settings.first_output_size, settings.second_output_size),
            pool_size=settings.pool_size,
            embedding_dropout=settings.embedding_dropout,
            feedforward_dropout=settings.feedforward_dropout,
            integrator_dropout=settings.integrator_dropout,
            output_dropouts=(settings.first_output_dropout, settings.second_output_dropout),
        )
        return Sst5Probe(inputs=inputs, classifier=classifier)

    def count(self, example: Phrase, prediction: list[float]) -> np.ndarray:
        """Whether the example is right, and 1."""
        return np.array([predicted_class(prediction) == example.label, 1], dtype=np.float64)

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """The share of examples that are right."""
        return {self.metric: 100 * counts[..., 0] / np.maximum(counts[..., 1], 1)}

    def details(self, examples: Sequence[Phrase], predictions: Sequence[list[float]]) -> str:
        """Accuracy on two classes, and how often each class was predicted for each other."""
        polar = [
            (example.label > NEUTRAL) == (sum(probabilities[NEUTRAL + 1 :]) > sum(probabilities[:NEUTRAL]))
            for example, probabilities in zip(examples, predictions, strict=True)
            if example.label != NEUTRAL
        ]
        table = np.zeros((CLASSES, CLASSES), dtype=np.int64)
        for example, probabilities in zip(examples, predictions, strict=True):
            table[example.label, predicted_class(probabilities)] += 1
        lines = ["gold \\ predicted" + "".join(f"{label:7}" for label in range(CLASSES))]
        lines += [f"{label:16}" + "".join(f"{count:7,}" for count in row) for label, row in enumerate(table)]
        if polar:
            share = 100 * sum(polar) / len(polar)
            lines.append(f"positive or negative: {share:.2f} of the {len(polar):,} that are not neutral")
        return "\n".join(lines)

    def write_predictions(self, path: Path, examples: Sequence[Phrase], predictions: Sequence[list[float]]) -> None:
        """JSON lines: gold and predicted label, the probabilities of the five classes, and the text."""
        with atomic_path(path) as partial, open(partial, "w", encoding="utf-8", newline="\n") as file:
            for example, probabilities in zip(examples, predictions, strict=True):
                record = {
                    "gold": example.label,
                    "predicted": predicted_class(probabilities),
                    "probabilities": [round(probability, 6) for probability in probabilities],
                    "text": " ".join(example.sentence.words),
                }
                file.write(json.dumps(record, ensure_ascii=False) + "\n")


def distinct_phrases(phrases: Sequence[Phrase]) -> list[Phrase]:
    """The first of the phrases with the same words and label, in their order."""
    first: dict[tuple[tuple[str, ...], int], Phrase] = {}
    for phrase in phrases:
        first.setdefault((phrase.sentence.words, phrase.label), phrase)
    return list(first.values())


def predicted_class(probabilities: Sequence[float]) -> int:
    """The class of the highest probability."""
    return max(range(len(probabilities)), key=probabilities.__getitem__)


def parse_tree(line: str) -> tuple[list[str], list[tuple[int, int, int]]]:
    """The words of a tree, and first word, last word + 1 and label of each node, a node before those under it.

    Raises `ValueError` that says what is wrong with a line that is not exactly one tree.
    """
    words: list[str] = []
    nodes: list[tuple[int, int, int]] = []
    open_nodes: list[int] = []
    for token in _TOKEN.findall(line):
        if nodes and not open_nodes:
            raise ValueError(f"{token!r} stands behind the end of the tree")
        if token[0] == "(":
            if token[1:] not in LABELS:
                raise ValueError(f"the label {token[1:]!r} is not one of 0, 1, 2, 3, 4")
            open_nodes.append(len(nodes))
            nodes.append((len(words), len(words), LABELS[token[1:]]))
        elif not open_nodes:
            raise ValueError(f"the line begins with {token!r} and not with a bracket")
        elif token == ")":
            node = open_nodes.pop()
            begin, _, label = nodes[node]
            if begin == len(words):
                raise ValueError(f"a node with the label {label} holds no word")
            nodes[node] = begin, len(words), label
        else:
            words.append(token)
    if open_nodes:
        count = len(open_nodes)
        raise ValueError("1 bracket is not closed" if count == 1 else f"{count} brackets are not closed")
    return words, nodes


TASK = Sst5Task(
    name="sst5",
    metric="accuracy",
    unit="phrases",
    item="sentences",
    suffix=".jsonl",
    published=Sst5Settings(
        learning_rate=1e-3,
        gradient_norm=5.0,
        batch_size=100,
        epochs=40,
        patience=5,
        feedforward_size=300,
        hidden_size=300,
        first_output_size=1200,
        second_output_size=600,
        pool_size=4,
        embedding_dropout=0.5,
        feedforward_dropout=0.25,
        integrator_dropout=0.1,
        first_output_dropout=0.2,
        second_output_dropout=0.3,
    ),
    small=Sst5Settings(
        learning_rate=1e-3,
        decay=0.95,
        gradient_norm=5.0,
        batch_size=100,
        epochs=2,
        patience=2,
        feedforward_size=100,
        hidden_size=100,
        first_output_size=200,
        second_output_size=100,
        pool_size=2,
        embedding_dropout=0.5,
        feedforward_dropout=0.25,
        integrator_dropout=0.1,
        first_output_dropout=0.2,
        second_output_dropout=0.3,
    ),
)
