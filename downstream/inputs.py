"""What does a probe read: layer states of a frozen encoder, fixed word vectors, or both?

`InputSources` looks everything up once for all sentences of a run; `ProbeInputs` is the trained part (the scalar mix)
and makes the padded batches of one probe. Another way to get layer states is another `LayerStates`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from allennlp_light.modules.scalar_mix import ScalarMix
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from downstream.sentence import Sentence
from elmoc.errors import InputError
from elmoc.feature_file import FeatureFile
from elmoc.progress import progress_bar
from elmoc.word_vectors import open_word_vectors

KINDS = {"vectors": (True, False), "both": (True, True), "features": (False, True)}
"""Kind of inputs → whether it has word vectors, whether it has layer states."""


class LayerStates(Protocol):
    """Anything that knows the layer states of the sentences of a run."""

    layers: int
    width: int

    def lookup(self, sentence: Sentence) -> Tensor:
        """float32 [layers, n, width] on the CPU."""

    def describe(self) -> dict[str, Any]:
        """What a line of results says about where the states come from."""


class FeatureStates:
    """Layer states from a feature file, of which up to `memory_limit` bytes are kept in memory.

    Every sentence is read and checked at once, so that a run cannot break off later: raises `InputError`, with the
    sentence and its place in the task's data, when one is not in the file or has another number of tokens.
    """

    def __init__(self, path: Path, *, sentences: Sequence[Sentence], memory_limit: float) -> None:
        self._file = FeatureFile(path)
        self.layers = self._file.layers
        self.width = self._file.width
        self._kept: dict[tuple[str, ...], Tensor] = {}
        distinct = {sentence.words: sentence for sentence in sentences}
        free = memory_limit
        for sentence in progress_bar(
            iterable=distinct.values(), desc="features", unit=" sentences", leave=False, delay=2
        ):
            states = self._read(sentence)
            free -= states.nbytes
            if free >= 0:
                self._kept[sentence.words] = states

    def lookup(self, sentence: Sentence) -> Tensor:
        """float32 [layers, n, width]."""
        kept = self._kept.get(sentence.words)
        return self._read(sentence) if kept is None else kept

    def describe(self) -> dict[str, Any]:
        """The file and the attributes of its root: the fingerprints of the model and its word vectors."""
        attributes = {
            name: value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value
            for name, value in self._file.attributes.items()
        }
        return {"file": str(self._file.path), **attributes}

    def _read(self, sentence: Sentence) -> Tensor:
        index = self._file.find(sentence.words)
        if index is None:
            raise self._unusable(sentence, "is not in the file")
        array = self._file[index].astype(np.float32, copy=False)
        states = torch.from_numpy(array[None] if array.ndim == 2 else array)  # [L + 1, n, 2P]
        if states.shape != (self.layers, len(sentence.words), self.width):
            expected = f"{self.layers} × {len(sentence.words)} × {self.width} (layers × tokens × width)"
            raise self._unusable(sentence, f"has the shape {' × '.join(map(str, states.shape))}, not {expected}")
        return states

    def _unusable(self, sentence: Sentence, what: str) -> InputError:
        text = " ".join(sentence.words)
        return InputError(
            f'{self._file.path}: the sentence "{text if len(text) <= 80 else text[:79] + "…"}" ({sentence.file}, '
            f"line {sentence.line}) {what}: write the sentences with `python -m downstream sentences TASK FILES…` and "
            "dump the features of that text with `elmoc dump-features`"
        )


class WordTable:
    """The vectors of the distinct words of a run, looked up once.

    vectors  float32 [W, E]
    missing  how many of the words have no vector (all zeros)
    """

    def __init__(self, origin: str, *, sentences: Sequence[Sentence]) -> None:
        distinct = dict.fromkeys(word for sentence in sentences for word in sentence.words)
        self._rows = {word: row for row, word in enumerate(distinct)}
        words = list(distinct)
        source = open_word_vectors(origin, only=words)
        self.origin = origin
        self.fingerprint = source.fingerprint
        self.vectors = torch.from_numpy(source.lookup(words))  # [W, E]
        self.missing = int((~self.vectors.any(dim=1)).sum())

    def rows(self, sentence: Sentence) -> Tensor:
        """int64 [n]: the row of each word."""
        return torch.tensor([self._rows[word] for word in sentence.words])

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


@dataclass(frozen=True)
class InputSources:
    """Where the inputs of a run come from; shared by all its probes."""

    words: WordTable | None
    states: LayerStates | None

    def select(self, kind: str) -> "InputSources":
        """Those sources that the `kind` of inputs has; all of them must be there."""
        with_words, with_states = KINDS[kind]
        assert self.words is not None or not with_words
        assert self.states is not None or not with_states
        return InputSources(words=self.words if with_words else None, states=self.states if with_states else None)


class ProbeInputs(torch.nn.Module):
    """The inputs of one probe: the scalar mix of the layer states and the word vectors, side by side.

    The mix is ELMo's (Peters et al. 2018, equation 1): softmax weights over the layers and one scale, all trained.
    `size` (D) is 2P + E, or the one of them that there is.
    """

    table: Tensor

    def __init__(self, sources: InputSources) -> None:
        super().__init__()
        self._words = sources.words
        self._states = sources.states
        self.size = 0
        if sources.states is not None:
            self.mix = ScalarMix(sources.states.layers)
            self.size += sources.states.width
        if sources.words is not None:
            self.register_buffer("table", sources.words.vectors, persistent=False)  # [W, E]
            self.size += sources.words.vectors.shape[1]

    def forward(self, sentences: Sequence[Sentence]) -> tuple[Tensor, Tensor]:
        """float32 [B, T, D], zeros after the end of a sentence, and the lengths, int64 [B] on the CPU."""
        lengths = torch.tensor([len(sentence.words) for sentence in sentences])
        parts = []
        if self._states is not None:
            states = pad_sequence(
                [self._states.lookup(sentence).transpose(0, 1) for sentence in sentences], batch_first=True
            )  # [B, T, L + 1, 2P]
            parts.append(self.mix(states.to(self.mix.gamma.device).unbind(dim=2)))  # [B, T, 2P]
        if self._words is not None:
            rows = pad_sequence([self._words.rows(sentence) for sentence in sentences], batch_first=True)  # [B, T]
            vectors = self.table[rows.to(self.table.device)]  # [B, T, E]
            parts.append(vectors * valid_mask(lengths, vectors.device).unsqueeze(2))
        return torch.cat(parts, dim=2), lengths

    def mix_penalty(self) -> Tensor | float:
        """The sum of squares of the scalar mix's weights before the softmax; 0 without layer states."""
        if self._states is None:
            return 0.0
        return torch.cat(list(self.mix.scalar_parameters)).square().sum()


def valid_mask(lengths: Tensor, device: torch.device) -> Tensor:
    """bool [B, T]: true inside the sentences of `lengths` [B], of which the longest has T words."""
    return torch.arange(int(lengths.max()), device=device) < lengths.to(device).unsqueeze(1)
