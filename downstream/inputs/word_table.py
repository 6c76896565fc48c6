"""Word vectors of a run, of one source or of several side by side: one table of the distinct words of its sentences."""

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from downstream.inputs.kinds import SEPARATOR
from downstream.inputs.sentence import Sentence
from elmoc.errors import InputError
from elmoc.word_vectors.opening import open_word_vectors


class WordTable:
    """The vectors of the distinct words of a run, looked up once in each of S sources.

    sizes    how many of the E numbers of a vector are from each source
    vectors  float32 [W, E]
    padded   float32 [W + 1, E]: the same and a row of zeros for the padding after a sentence
    known    float32 [W + 1, S]: 1 where a source has a vector for the word, 0 where it has none (all zeros)
    missing  how many of the words have a vector in none of the sources
    """

    def __init__(self, *origins: str, sentences: Sequence[Sentence]) -> None:
        words = list(dict.fromkeys(word for sentence in sentences for word in sentence.words))
        self._rows = {word: row for row, word in enumerate(words)}
        self._sentences: dict[tuple[str, ...], np.ndarray] = {}
        sources = [open_word_vectors(origin, only=words) for origin in origins]
        self._origins = origins
        self._fingerprints = [source.fingerprint for source in sources]
        self.sizes = [source.size for source in sources]
        self.padded = torch.zeros(len(words) + 1, sum(self.sizes))
        self.vectors = self.padded[:-1]
        for origin, source, block in zip(origins, sources, self.vectors.split(self.sizes, dim=1), strict=True):
            block.copy_(torch.from_numpy(source.lookup(words)))
            if not (finite := block.isfinite().all(dim=1)).all():
                word = words[int((~finite).nonzero()[0])]
                raise InputError(
                    f"{origin}: the vector of {reprlib.repr(word)} has numbers that are not finite: make the vectors "
                    "again"
                )
        self.known = torch.stack([block.any(dim=1) for block in self.padded.split(self.sizes, dim=1)], dim=1).float()
        self.missing = int((~self.vectors.any(dim=1)).sum())

    def distribution(self, sentences: Sequence[Sentence]) -> tuple[Tensor, Tensor]:
        """Mean [E], and standard deviation around it, of the numbers of the distinct words that have a vector.

        The deviation is that of all numbers of a source: of one source [], of several [E].
        """
        words = dict.fromkeys(word for sentence in sentences for word in sentence.words)
        vectors = self.vectors[[self._rows[word] for word in words]]
        means, deviations = [], []
        for origin, block in zip(self._origins, vectors.split(self.sizes, dim=1), strict=True):
            block = block[block.any(dim=1)]
            if len(block) < 2:
                raise InputError(f"{origin} has vectors of fewer than two words of the training data: choose others")
            means.append(block.mean(dim=0))
            deviations.append((block - means[-1]).std())
        if len(deviations) == 1:
            return means[0], deviations[0]
        return torch.cat(means), torch.stack(deviations).repeat_interleave(torch.tensor(self.sizes))

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
            "origin": SEPARATOR.join(self._origins),
            "fingerprint": SEPARATOR.join(self._fingerprints),
            "size": size,
            "words": words,
            "words_without_vector": self.missing,
        }
