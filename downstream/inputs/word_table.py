"""Word vectors of a run: one table of the distinct words of its sentences."""

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from downstream.inputs.sentence import Sentence
from elmoc.errors import InputError
from elmoc.files.arrays import all_finite
from elmoc.word_vectors.sources import open_word_vectors


class WordTable:
    """The vectors of the distinct words of a run, looked up once.

    vectors  float32 [W, E]
    padded   float32 [W + 1, E]: the same and a row of zeros for the padding after a sentence
    missing  how many of the words have no vector (all zeros)
    """

    def __init__(self, origin: str, *, sentences: Sequence[Sentence]) -> None:
        words = list(dict.fromkeys(word for sentence in sentences for word in sentence.words))
        self._rows = {word: row for row, word in enumerate(words)}
        self._sentences: dict[tuple[str, ...], np.ndarray] = {}
        source = open_word_vectors(origin, only=words)
        self.origin = origin
        self.fingerprint = source.fingerprint
        self.padded = torch.zeros(len(words) + 1, source.size)
        self.vectors = self.padded[:-1]
        self.vectors.copy_(torch.from_numpy(source.lookup(words)))
        if not all_finite(self.vectors.numpy()):
            word = words[int((~self.vectors.isfinite().all(dim=1)).nonzero()[0])]
            raise InputError(
                f"{origin}: the vector of {reprlib.repr(word)} has numbers that are not finite: make the vectors again"
            )
        self.missing = int((~self.vectors.any(dim=1)).sum())

    def distribution(self, sentences: Sequence[Sentence]) -> tuple[Tensor, Tensor]:
        """Mean [E], and standard deviation [] around it, of the numbers of the distinct words that have a vector."""
        words = dict.fromkeys(word for sentence in sentences for word in sentence.words)
        vectors = self.vectors[[self._rows[word] for word in words]]
        vectors = vectors[vectors.any(dim=1)]
        if len(vectors) < 2:
            raise InputError(f"{self.origin} has vectors of fewer than two words of the training data: choose others")
        mean = vectors.mean(dim=0)
        return mean, (vectors - mean).std()

    def rows(self, sentences: Sequence[Sentence], time: int) -> Tensor:
        """int32 [B, time]: the row of each word in `padded`."""
        rows = np.full((len(sentences), time), len(self._rows), dtype=np.int32)
        for row, sentence in zip(rows, sentences, strict=True):
            words = sentence.words
            if words not in self._sentences:  # kept: every epoch reads the sentence again
                self._sentences[words] = np.array([self._rows[word] for word in words], dtype=np.int32)
            row[: len(words)] = self._sentences[words]
        return torch.from_numpy(rows)

    def describe(self) -> dict[str, Any]:
        """What a line of results says about the word vectors."""
        words, size = self.vectors.shape
        return {
            "origin": self.origin,
            "fingerprint": self.fingerprint,
            "size": size,
            "words": words,
            "words_without_vector": self.missing,
        }
