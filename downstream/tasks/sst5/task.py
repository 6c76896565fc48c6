"""Sentiment of film reviews in five classes (SST-5): how good a film is, by a sentence
about it.

The trees of the Stanford Sentiment Treebank (Socher et al. 2013) have a label from 0
(very negative) to 4 (very positive) at every node. The probe trains on the phrases of
all nodes and is scored on whole sentences; its model is the biattentive classification
network of McCann et al. (2017) with the hyper-parameters published for ELMo, on other
word vectors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from msgspec import Meta

from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sentence import TaskSentence, make_sentence
from downstream.readers.label_sets import FIVE_CLASSES, LabelSet
from downstream.readers.labelled_rows import read_labelled_rows
from downstream.readers.rows import beginning
from downstream.settings import (
    SMALL_INPUTS,
    ReaderOptions,
    TrainingSettings,
)
from downstream.tasks.classification import (
    ClassificationTask,
    Classifier,
    Probabilities,
)
from downstream.tasks.sst5.network import CLASSES, BiattentiveClassifier, Sst5Settings
from downstream.tasks.sst5.trees import parse_tree
from elmoc.errors import InputError, reading
from elmoc.files.text import read_lines
from elmoc.text.tokenizer import tokenise_sentence


@dataclass(frozen=True)
class Phrase:
    """The words under a node of a tree, and the node's label."""

    sentence: TaskSentence
    label: int


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

    def logits(self, examples: Sequence[Phrase]) -> torch.Tensor:
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
        phrases.append(Phrase(sentence, labels.names.index(row.label)))
    return phrases


class PhraseTask(ClassificationTask[Phrase]):
    """A task whose examples are phrases, the labels of which are numbers from 0."""

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
                phrases.append(Phrase(own, node.label))
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
        **SMALL_INPUTS,
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
