"""Sentiment of film reviews in five classes (SST-5): how good a film is, by a sentence
about it.

The trees of the Stanford Sentiment Treebank (Socher et al. 2013) have a label from 0
(very negative) to 4 (very positive) at every node. The probe trains on the phrases of
all nodes and is scored on whole sentences; its model is the biattentive classification
network of McCann et al. (2017) with the hyper-parameters published for ELMo.
"""

import json
import re
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from allennlp_light.modules.feedforward import FeedForward
from allennlp_light.modules.maxout import Maxout
from allennlp_light.nn.util import masked_mean, masked_softmax, weighted_sum
from msgspec import Meta
from torch import Tensor

from downstream.inputs.probe_inputs import ProbeInputs, valid_mask
from downstream.inputs.sentence import TaskSentence, make_sentence
from downstream.metrics import ratio
from downstream.modules.tagging import BiLstm
from downstream.printing import counted
from downstream.probe.task import Probe, Task, require_numbers
from downstream.settings import (
    SMALL_MIX_RATE,
    Dropout,
    ReaderOptions,
    Size,
    TrainingSettings,
)
from elmoc.errors import InputError, reading
from elmoc.files import read_lines

LABELS = {str(label): label for label in range(5)}
# The words of the phrases of all nodes of a tree together: in a damaged file they grow
# with the square of its length.
MOST_WORDS = 100_000
# A bracket that opens and its label, a bracket that closes, or a word (no-break spaces
# stay inside).
_TOKEN = re.compile(r"\([^ \t()]*|\)|[^ \t()]+")


class Node(NamedTuple):
    """A node of a tree: its first word, its last word + 1, and its label."""

    begin: int
    end: int
    label: int


def read_trees(path: Path) -> Iterator[tuple[TaskSentence, list[Node]]]:
    """Yield sentence and nodes (the root first) of each tree of a file (plain or
    `.gz`); blank lines are skipped.

    Raises `InputError` for a file without trees, and with its number for a line that is
    not exactly one tree.
    """
    found = False
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            found = True
            with reading(f"{path}, line {number}"):
                words, nodes = parse_tree(line)
            yield make_sentence(words, file=path, line=number), nodes
    if not found:
        raise InputError(
            f"{path} holds no trees: one a line is expected, like (3 (2 This) (3 (3 works) (2 .)))"
        )


def parse_tree(line: str) -> tuple[list[str], list[Node]]:
    """The words of a tree, and its nodes, a node before those under it; raises
    `ValueError` for anything else.
    """
    words: list[str] = []
    nodes: list[Node] = []
    phrase_words = 0
    open_nodes: list[int] = []
    for token in _TOKEN.findall(line):
        if not open_nodes and (nodes or token[0] != "("):
            raise ValueError(f"{reprlib.repr(token)} stands outside the tree")
        if token[0] == "(":
            if token[1:] not in LABELS:
                raise ValueError(
                    f"the label {reprlib.repr(token[1:])} is not one of 0, 1, 2, 3, 4"
                )
            open_nodes.append(len(nodes))
            nodes.append(Node(len(words), len(words), LABELS[token[1:]]))
        elif token == ")":
            node = open_nodes.pop()
            begin, _, label = nodes[node]
            nodes[node] = Node(begin, len(words), label)
            phrase_words += len(words) - begin
            if begin == len(words) or phrase_words > MOST_WORDS:
                raise ValueError(
                    f"a node holds no word, or all nodes more than {MOST_WORDS:,} words together"
                )
        else:
            words.append(token)
    if open_nodes:
        raise ValueError(f"{len(open_nodes)} brackets are not closed")
    return words, nodes


CLASSES = 5


@dataclass(frozen=True)
class Phrase:
    """The words under a node of a tree and the node's label; `root` where they are the
    whole sentence.
    """

    sentence: TaskSentence
    label: int
    root: bool


@dataclass(frozen=True, kw_only=True)
class Sst5Settings(TrainingSettings):
    """Hyper-parameters of the probe."""

    feedforward_size: Annotated[
        Size, Meta(description="units of the feed-forward layer before the LSTMs")
    ] = 300
    hidden_size: Annotated[
        Size, Meta(description="units of each LSTM, each direction")
    ] = 300
    first_output_size: Annotated[
        Size, Meta(description="units of the first maxout layer")
    ] = 1200
    second_output_size: Annotated[
        Size, Meta(description="units of the second maxout layer")
    ] = 600
    pool_size: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000,
            description="linear functions whose maximum is a maxout unit",
        ),
    ] = 4
    embedding_dropout: Annotated[Dropout, Meta(description="dropout on the inputs")] = (
        0.5
    )
    feedforward_dropout: Annotated[
        Dropout, Meta(description="dropout after the feed-forward layer")
    ] = 0.25
    integrator_dropout: Annotated[
        Dropout, Meta(description="dropout after the pooling")
    ] = 0.1
    first_output_dropout: Annotated[
        Dropout, Meta(description="dropout after the first maxout layer")
    ] = 0.2
    second_output_dropout: Annotated[
        Dropout, Meta(description="dropout after the second maxout layer")
    ] = 0.3


class BiattentiveClassifier(torch.nn.Module):
    """The network of McCann et al. (2017, section 5) for one sentence, in the form of
    ELMo's SST-5 experiments.

    Inputs → feed-forward → biLSTM (the encoder) → attention of the sentence over itself
    → biLSTM (the integrator) → pooling over the words (maximum, minimum, mean, and a
    mean with learned weights) → three maxout layers.
    """

    def __init__(self, *, input_size: int, settings: Sst5Settings) -> None:
        super().__init__()
        self.embedding_dropout = torch.nn.Dropout(settings.embedding_dropout)
        self.feedforward = FeedForward(
            input_size,
            1,
            settings.feedforward_size,
            [torch.nn.ReLU()],
            settings.feedforward_dropout,
        )
        self.encoder = BiLstm(
            input_size=settings.feedforward_size, hidden_size=settings.hidden_size
        )
        self.integrator = BiLstm(
            input_size=3 * self.encoder.output_size, hidden_size=settings.hidden_size
        )
        self.pooling_weight = torch.nn.Linear(self.integrator.output_size, 1)
        self.integrator_dropout = torch.nn.Dropout(settings.integrator_dropout)
        sizes = [settings.first_output_size, settings.second_output_size, CLASSES]
        dropouts = [settings.first_output_dropout, settings.second_output_dropout, 0.0]
        self.output = Maxout(
            4 * self.integrator.output_size,
            len(sizes),
            sizes,
            settings.pool_size,
            dropouts,
        )

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """[B, T, D] and lengths [B] (on the CPU, each at least 1) → scores of the
        classes before softmax, [B, C].
        """
        mask = valid_mask(lengths, x.device)  # [B, T]
        states = self.encoder(
            self.feedforward(self.embedding_dropout(x)), lengths
        )  # [B, T, 2H]
        integrated = self.integrator(
            self_biattention(states, mask), lengths
        )  # [B, T, 2H]
        return self.output(self.integrator_dropout(self.pool(integrated, mask)))

    def pool(self, states: Tensor, mask: Tensor) -> Tensor:
        """[B, T, 2H] and mask [B, T] → [B, 8H]: maximum, minimum, mean, and the mean
        with learned weights.
        """
        weights = masked_softmax(
            self.pooling_weight(states).squeeze(2), mask, memory_efficient=True
        )  # [B, T]
        outside = ~mask.unsqueeze(2)
        return torch.cat(
            [
                states.masked_fill(outside, -torch.inf).amax(dim=1),
                states.masked_fill(outside, torch.inf).amin(dim=1),
                masked_mean(states, ~outside, dim=1),
                weighted_sum(states, weights),
            ],
            dim=1,
        )


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


def self_biattention(states: Tensor, mask: Tensor) -> Tensor:
    """Biattention of a sentence with itself: [B, T, 2H] and mask [B, T] → [B, T, 6H].

    Each word's state x, and with a the mean of all the states, weighted by the softmax
    of their products with x: [x, x − a, x ∗ a] (McCann et al. 2017, equations 4 to 8,
    the two sentences being one).
    """
    weights = masked_softmax(
        states.bmm(states.transpose(1, 2)), mask, memory_efficient=True
    )  # [B, T, T]
    attended = weighted_sum(states, weights)  # [B, T, 2H]
    return torch.cat([states, states - attended, states * attended], dim=2)


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
