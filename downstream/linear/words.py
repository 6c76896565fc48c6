"""Words of a split: those that are classified, their labels, and their vectors layer by layer."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from downstream.inputs.probe_inputs import InputSources, LayerStates
from downstream.inputs.sentence import Sentence
from downstream.inputs.word_table import WordTable
from downstream.linear.labels import LabelledSentence, Labels, read_labelled
from elmoc.errors import InputError
from elmoc.files.arrays import all_finite
from elmoc.files.checksums import fingerprint

SEED = 13
"""Of the order in which sentences are taken where there are more words than are asked for."""
BATCH = 64
"""Sentences whose states are looked up together."""
ALL_LAYERS = "all layers"

Vectors = tuple[str, Callable[[np.ndarray], np.ndarray]]
"""The name of an input, and what gives its vectors of the words in rows [n]: float32 [n, D], a new array each time."""


@dataclass(frozen=True)
class WordSplit:
    """The sentences of a split.

    labels  for each kind of label, those of all words
    files   how many sentences each file holds
    """

    sentences: list[Sentence]
    labels: dict[str, Labels]
    files: dict[str, int]
    fingerprints: list[str]

    @property
    def words(self) -> list[str]:
        """All words, as they are spelled."""
        return [word for sentence in self.sentences for word in sentence.words]

    def labelled(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Which words have a label of the kind, as rows [n], and these labels, strings [n]."""
        rows = np.array([row for row, label in enumerate(self.labels[kind]) if label is not None], dtype=np.int64)
        return rows, np.array([label for label in self.labels[kind] if label is not None], dtype=np.str_)


def read_words(name: str, paths: Sequence[Path], kinds: Sequence[str], *, most_words: int) -> WordSplit:
    """Read the files of a split; of more words than `most_words`, random whole sentences, the same in every run."""
    files: dict[str, int] = {}
    fingerprints, sentences = [], []
    for path in paths:
        if str(path) in files:
            raise InputError(f"--{name} names {path} twice: name it once")
        found = list(read_labelled(path, kinds))
        files[str(path)] = len(found)
        fingerprints.append(fingerprint(path.read_bytes()))
        sentences += found
    sentences = _random_sentences(sentences, most_words)
    labels: dict[str, Labels] = {
        kind: [label for one in sentences for label in one.labels[row]] for row, kind in enumerate(kinds)
    }
    return WordSplit([one.sentence for one in sentences], labels, files, fingerprints)


def _random_sentences(sentences: list[LabelledSentence], most_words: int) -> list[LabelledSentence]:
    lengths = np.array([len(one.sentence.words) for one in sentences])
    if lengths.sum() <= most_words:
        return sentences
    order = np.random.default_rng(SEED).permutation(len(sentences))
    count = max(1, int(np.searchsorted(lengths[order].cumsum(), most_words, side="right")))
    return [sentences[row] for row in sorted(order[:count])]


def inputs_of(sources: InputSources, split: WordSplit) -> Iterator[Vectors]:
    """Yield what a split's words can be classified by: word vectors, each layer, and all layers side by side."""
    if sources.words is not None:
        words = sources.words
        yield "vectors", lambda rows: _vectors(words, split.sentences)[rows]
    if sources.states is not None:
        states = _states(sources.states, split.sentences)
        names = sources.states.names
        for layer, name in enumerate(names):
            yield f"layer {name}", lambda rows, layer=layer: states[rows, layer]  # type: ignore[misc]
        if len(names) > 1:
            yield ALL_LAYERS, lambda rows: states[rows].reshape(len(rows), -1)


def _vectors(words: WordTable, sentences: Sequence[Sentence]) -> np.ndarray:
    """float32 [N, E]; a word without a vector has zeros."""
    rows = [words.rows([sentence], len(sentence.words))[0].long() for sentence in sentences]
    return np.concatenate([words.vectors[row].numpy() for row in rows])


def _states(source: LayerStates, sentences: Sequence[Sentence]) -> np.ndarray:
    """float32 [N, L + 1, 2P]."""
    count = sum(len(sentence.words) for sentence in sentences)
    states = np.empty((count, source.layers, source.width), dtype=np.float32)
    end = 0
    for first in range(0, len(sentences), BATCH):
        batch = sentences[first : first + BATCH]
        for sentence, found in zip(batch, source.lookup(batch), strict=True):
            begin, end = end, end + len(sentence.words)
            states[begin:end] = found.transpose(0, 1).numpy()
            if not all_finite(states[begin:end]):
                raise InputError(
                    f"{sentence.file}, line {sentence.line}: the layer states of the sentence that begins here have "
                    "numbers that are not finite: make the features again"
                )
    return states
