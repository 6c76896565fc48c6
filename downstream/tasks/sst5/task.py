"""Sentiment of film reviews in five classes (SST-5): how good a film is, by a sentence
about it.

The trees of the Stanford Sentiment Treebank (Socher et al. 2013) have a label from 0
(very negative) to 4 (very positive) at every node. The probe trains on the phrases of
all nodes and is scored on whole sentences; its model is the biattentive classification
network of McCann et al. (2017) with the hyper-parameters published for ELMo.
"""

import re
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
from allennlp_light.modules.feedforward import FeedForward
from allennlp_light.modules.maxout import Maxout
from allennlp_light.nn.util import masked_mean, masked_softmax, weighted_sum
from msgspec import Meta
from torch import Tensor

from downstream.inputs.probe_inputs import ProbeInputs, valid_mask
from downstream.inputs.sentence import TaskSentence, make_sentence
from downstream.modules.lstm import BiLstm
from downstream.printing import counted
from downstream.readers.label_sets import FIVE_CLASSES, LabelSet
from downstream.readers.labelled_rows import read_labelled_rows
from downstream.readers.rows import beginning
from downstream.settings import (
    SMALL_MIX_RATE,
    Dropout,
    ReaderOptions,
    Size,
    TrainingSettings,
)
from downstream.tasks.classification import (
    ClassificationTask,
    Classifier,
    Probabilities,
)
from elmoc.errors import InputError, reading
from elmoc.files.text import read_lines
from elmoc.text.tokenizer import tokenise_sentence

# A bracket that opens and its label, a bracket that closes, or a word (no-break spaces
# stay inside).
_TOKEN = re.compile(r"\([^ \t()]*|\)|[^ \t()]+")
_OPENING = re.compile(r"\([0-4]")


class Node(NamedTuple):
    """A node of a tree: its first word, its last word + 1, and its label."""

    begin: int
    end: int
    label: int


def parse_tree(line: str) -> tuple[list[str], list[Node]]:
    """The words of a tree, and its nodes, a node before those under it.

    Raises:
        ValueError: anything else.
    """
    words: list[str] = []
    nodes: list[Node] = []
    # Places in `nodes` of those whose brackets are open, the innermost last.
    open_nodes: list[int] = []
    for token in _TOKEN.findall(line):
        if not open_nodes and (nodes or token[0] != "("):
            raise ValueError(f"{reprlib.repr(token)} stands outside the tree")
        if token == ")":
            place = open_nodes.pop()
            nodes[place] = nodes[place]._replace(end=len(words))
        elif token[0] != "(":
            words.append(token)
        elif _OPENING.fullmatch(token):
            open_nodes.append(len(nodes))
            # The end is known when the bracket is closed.
            nodes.append(Node(len(words), len(words), int(token[1])))
        else:
            shown = reprlib.repr(token[1:])
            raise ValueError(f"the label {shown} is not one of 0, 1, 2, 3, 4")
    if open_nodes or any(node.begin == node.end for node in nodes):
        raise ValueError("a bracket is not closed, or a node holds no word")
    return words, nodes


# SST-5: from very negative to very positive.
CLASSES = 5


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
    embedding_dropout: Annotated[
        Dropout,
        Meta(description="dropout on the inputs"),
    ] = 0.5
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
            input_dim=input_size,
            num_layers=1,
            hidden_dims=settings.feedforward_size,
            activations=[torch.nn.ReLU()],
            dropout=settings.feedforward_dropout,
        )
        self.encoder = BiLstm(
            input_size=settings.feedforward_size, hidden_size=settings.hidden_size
        )
        # `self_biattention` makes three vectors of each state.
        self.integrator = BiLstm(
            input_size=3 * self.encoder.output_size, hidden_size=settings.hidden_size
        )
        self.pooling_weight = torch.nn.Linear(self.integrator.output_size, 1)
        self.integrator_dropout = torch.nn.Dropout(settings.integrator_dropout)
        # The last layer gives the scores of the classes, which have no dropout.
        sizes = [settings.first_output_size, settings.second_output_size, CLASSES]
        dropouts = [settings.first_output_dropout, settings.second_output_dropout, 0.0]
        # `pool` puts four vectors side by side.
        self.output = Maxout(
            input_dim=4 * self.integrator.output_size,
            num_layers=len(sizes),
            output_dims=sizes,
            pool_sizes=settings.pool_size,
            dropout=dropouts,
        )

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """[B, T, D] and lengths [B] (on the CPU, each at least 1) → scores of the
        classes before softmax, [B, C].
        """
        mask = valid_mask(lengths, x.device)  # [B, T]
        projected = self.feedforward(self.embedding_dropout(x))
        states = self.encoder(projected, lengths)  # [B, T, 2H]
        attended = self_biattention(states, mask)  # [B, T, 6H]
        integrated = self.integrator(attended, lengths)  # [B, T, 2H]
        return self.output(self.integrator_dropout(self.pool(integrated, mask)))

    def pool(self, states: Tensor, mask: Tensor) -> Tensor:
        """[B, T, 2H] and mask [B, T] → [B, 8H]: maximum, minimum, mean, and the mean
        with learned weights.
        """
        scores = self.pooling_weight(states).squeeze(2)  # [B, T]
        # Without `memory_efficient`, padding would get a share of the weight.
        weights = masked_softmax(scores, mask, memory_efficient=True)
        inside = mask.unsqueeze(2)
        # Padding must not be the largest or the smallest.
        largest = states.masked_fill(~inside, -torch.inf).amax(dim=1)
        smallest = states.masked_fill(~inside, torch.inf).amin(dim=1)
        mean = masked_mean(states, inside, dim=1)
        weighted_mean = weighted_sum(states, weights)
        return torch.cat([largest, smallest, mean, weighted_mean], dim=1)


def self_biattention(states: Tensor, mask: Tensor) -> Tensor:
    """Biattention of a sentence with itself: [B, T, 2H] and mask [B, T] → [B, T, 6H].

    Each word's state x becomes [x, x − a, x ∗ a]. Here a is the mean of all states,
    weighted by the softmax of their products with x (McCann et al. 2017, equations 4 to
    8, for two sentences that are the same).
    """
    # A word attends to itself, too, as in the published version.
    products = states.bmm(states.transpose(1, 2))  # [B, T, T]
    weights = masked_softmax(products, mask, memory_efficient=True)
    attended = weighted_sum(states, weights)  # [B, T, 2H]
    return torch.cat([states, states - attended, states * attended], dim=2)


@dataclass(frozen=True)
class Phrase:
    """The words under a node of a tree and the node's label; `root` where they are the
    whole sentence.
    """

    sentence: TaskSentence
    label: int
    root: bool


class Sst5Probe(Classifier[Phrase]):
    """Puts a phrase into one of the classes.

    network: made of `input_size` and `settings`, from inputs [B, T, D] and lengths [B]
        to scores [B, C].
    """

    labels = range(CLASSES)
    network: type[torch.nn.Module] = BiattentiveClassifier

    def __init__(self, *, inputs: ProbeInputs, settings: TrainingSettings) -> None:
        super().__init__()
        self.inputs = inputs
        self.classifier = self.network(input_size=inputs.size, settings=settings)

    def logits(self, examples: Sequence[Phrase]) -> Tensor:
        return self.classifier(*self.inputs([each.sentence for each in examples]))


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


def read_phrases(
    path: Path, labels: LabelSet, words_of: Callable[[str], list[str]]
) -> list[Phrase]:
    """The texts of labelled rows, each a whole sentence; `words_of` divides them."""
    phrases = []
    for row in read_labelled_rows(path, labels):
        words = words_of(row.texts[0])
        if not words:
            raise InputError(f"{path}, line {row.line}: a text without words")
        sentence = make_sentence(words, file=path, line=row.line)
        phrases.append(Phrase(sentence, labels.names.index(row.label), root=True))
    return phrases


class PhraseTask(ClassificationTask[Phrase]):
    """A task whose examples are phrases, the labels of which are numbers from 0."""

    def describe(self, examples: Sequence[Phrase]) -> str:
        roots = [example for example in examples if example.root]
        numbers = " ".join(map(str, np.bincount([root.label for root in roots])))
        text = f"{_sizes(roots, self.item.removesuffix('s'))}, labels from 0: {numbers}"
        if len(examples) > len(roots):
            text += f"; {_sizes(examples, 'phrase')}"
        return text

    def record(
        self, example: Phrase, best: int, probabilities: Probabilities
    ) -> dict[str, Any]:
        return {
            "gold": example.label,
            "predicted": best,
            "probabilities": list(probabilities.values()),
            "text": " ".join(example.sentence.words),
        }


class Sst5Task(PhraseTask):
    def read(
        self, path: Path, options: Sst5ReaderOptions, *, training: bool
    ) -> list[Phrase]:
        """Read trees: whole sentences, each before its phrases, which training reads
        too. Or read labelled rows, each a whole sentence.
        """
        if not beginning(path).startswith(b"("):
            return read_phrases(path, FIVE_CLASSES, tokenise_sentence)
        phrases = []
        for number, line in enumerate(read_lines(path), 1):
            with reading(f"{path}, line {number}"):
                words, nodes = parse_tree(line.strip())
            sentence = make_sentence(words, file=path, line=number)
            # The root comes first.
            kept = nodes if training and options.subtrees != "none" else nodes[:1]
            for node in kept:
                own = replace(sentence, words=sentence.words[node.begin : node.end])
                phrases.append(Phrase(own, node.label, root=node is nodes[0]))
        return phrases

    def training_examples(
        self, examples: list[Phrase], options: Sst5ReaderOptions
    ) -> list[Phrase]:
        """Leave out the phrases that stand elsewhere, too, where the options say so."""
        if options.subtrees != "distinct":
            return examples
        # One phrase may have several labels, in several sentences.
        first: dict[tuple[tuple[str, ...], int], Phrase] = {}
        for phrase in examples:
            first.setdefault((phrase.sentence.words, phrase.label), phrase)
        return list(first.values())


def _sizes(phrases: Sequence[Phrase], noun: str) -> str:
    tokens = sum(len(phrase.sentence.words) for phrase in phrases)
    return f"{counted(len(phrases), noun)}, {counted(tokens, 'token')}"


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
    # Smaller layers and two epochs, for a CPU.
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
