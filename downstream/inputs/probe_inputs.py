"""What does a probe read: layer states of a frozen encoder, fixed word vectors, or both?

`InputSources` are opened and checked once for all sentences of a run; `ProbeInputs` is the trained part (the scalar
mix) and makes the padded batches of one probe. Another way to get layer states is another `LayerStates`.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from allennlp_light.modules.scalar_mix import ScalarMix
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding

from downstream.inputs.sentence import Sentence
from elmoc.errors import InputError
from elmoc.features.reader import FeatureFile
from elmoc.progress import progress_bar
from elmoc.word_vectors.sources import open_word_vectors

KINDS = {"vectors": (True, False), "both": (True, True), "features": (False, True), "model": (False, True)}
"""Kind of inputs → whether it has word vectors, whether it has layer states: of a feature file or of a model."""


class LayerStates(Protocol):
    """Anything that knows the layer states of the sentences of a run."""

    layers: int
    width: int

    def lookup(self, sentences: Sequence[Sentence]) -> list[Tensor]:
        """float32 [layers, n, width] on the CPU for each sentence; not to be written to."""

    def describe(self) -> dict[str, Any]:
        """What a line of results says about where the states come from."""


class FeatureStates:
    """Layer states from a feature file, which stay in the file: it is mapped into memory, not read into it.

    Every sentence is looked for and its shape checked at once, so that a run cannot break off later: raises
    `InputError`, with the sentence and its place in the task's data, when one is not in the file or has another number
    of tokens.
    """

    def __init__(self, path: Path, *, sentences: Sequence[Sentence]) -> None:
        self._file = FeatureFile(path)
        self.layers = self._file.layers
        self.width = self._file.width
        self._places: dict[tuple[str, ...], np.ndarray | int] = {}
        """A view, or the index of a sentence that has to be read each time."""
        distinct = {sentence.words: sentence for sentence in sentences}
        for sentence in progress_bar(
            iterable=distinct.values(), desc="features", unit=" sentences", leave=False, delay=2
        ):
            index, view = self._find(sentence)
            self._places[sentence.words] = index if view.flags.owndata or not view.dtype.isnative else view

    def lookup(self, sentences: Sequence[Sentence]) -> list[Tensor]:
        """float32 [layers, n, width] for each sentence; where the file is of float32, parts of it."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            return [self._read(self._places[sentence.words]) for sentence in sentences]

    def describe(self) -> dict[str, Any]:
        """The file and the attributes of its root: the fingerprints of the model and its word vectors."""
        return {
            "file": str(self._file.path),
            **{name: _json_value(value) for name, value in self._file.attributes.items()},
        }

    def _find(self, sentence: Sentence) -> tuple[int, np.ndarray]:
        index = self._file.find(sentence.words)
        if index is None:
            raise self._unusable(sentence, "is not in the file")
        view = self._file.view(index)
        shape = (1, *view.shape) if view.ndim == 2 else view.shape
        if shape != (self.layers, len(sentence.words), self.width):
            expected = f"{self.layers} × {len(sentence.words)} × {self.width} (layers × tokens × width)"
            raise self._unusable(sentence, f"has the shape {' × '.join(map(str, shape))}, not {expected}")
        return index, view

    def _read(self, place: np.ndarray | int) -> Tensor:
        array = self._file[place].astype(np.float32) if isinstance(place, int) else place
        states = torch.from_numpy(array).float()
        return states.unsqueeze(0) if states.ndim == 2 else states

    def _unusable(self, sentence: Sentence, what: str) -> InputError:
        text = " ".join(sentence.words)
        return InputError(
            f'{self._file.path}: the sentence "{text if len(text) <= 80 else text[:79] + "…"}" ({sentence.file}, '
            f"line {sentence.line}) {what}: write the sentences with `python -m downstream sentences TASK FILES…` and "
            "dump the features of that text with `elmoc dump-features`"
        )


def _json_value(value: Any) -> Any:
    """An attribute of a feature file as JSON can hold it; foreign files have bytes among them."""
    if isinstance(value, (np.generic, np.ndarray)):
        return _json_value(value.tolist())
    if isinstance(value, list):
        return [_json_value(one) for one in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, (str, int, float)) else str(value)


class WordTable:
    """The vectors of the distinct words of a run, looked up once.

    vectors  float32 [W, E]
    padded   float32 [W + 1, E]: the same and a row of zeros, for what stands after the end of a sentence
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
            row[: len(sentence.words)] = self._rows_of(sentence.words)
        return torch.from_numpy(rows)

    def _rows_of(self, words: tuple[str, ...]) -> np.ndarray:
        rows = self._sentences.get(words)
        if rows is None:  # kept, for a sentence comes back in every epoch
            rows = self._sentences[words] = np.array([self._rows[word] for word in words], dtype=np.int32)
        return rows

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
    It is computed where the states are, on the CPU, so that only its result goes to another device.
    `size` (D) is 2P + E, or the one of them that there is.
    """

    table: Tensor
    known: Tensor
    mean: Tensor
    deviation: Tensor

    def __init__(self, sources: InputSources) -> None:
        super().__init__()
        self._words = sources.words
        self._states = sources.states
        self.size = 0
        if sources.states is not None:
            self.mix = ScalarMix(sources.states.layers)
            self.size += sources.states.width
        if sources.words is not None:
            width = sources.words.vectors.shape[1]
            self.register_buffer("table", sources.words.padded, persistent=False)  # [W + 1, E]
            self.register_buffer("known", sources.words.padded.any(dim=1, keepdim=True).float(), persistent=False)
            self.register_buffer("mean", torch.zeros(width))
            self.register_buffer("deviation", torch.ones(()))
            self.size += width

    def standardise_words(self, sentences: Sequence[Sentence]) -> None:
        """Centre word vectors, and scale them to variance 1 over the distinct words of `sentences`.

        Vectors learned from little text share one large direction and have small numbers, from which a task model
        learns slowly. A word without a vector stays zero. Mean and deviation are kept with the probe's weights.
        """
        if self._words is not None:
            mean, deviation = self._words.distribution(sentences)
            self.mean.copy_(mean)
            self.deviation.copy_(deviation)

    def forward(self, sentences: Sequence[Sentence]) -> tuple[Tensor, Tensor]:
        """float32 [B, T, D], zeros after the end of a sentence, and the lengths, int64 [B] on the CPU."""
        lengths = [len(sentence.words) for sentence in sentences]
        parts = []
        if self._states is not None:
            weights = self.mix.gamma * torch.cat(list(self.mix.scalar_parameters)).softmax(dim=0)  # [L + 1]
            mixed = PaddedMix.apply(weights.cpu(), self._states.lookup(sentences))
            parts.append(mixed.to(weights.device))  # [B, T, 2P]
        if self._words is not None:
            rows = self._words.rows(sentences, max(lengths)).to(self.table.device)
            vectors, known = embedding(rows, self.table), embedding(rows, self.known)  # [B, T, E], [B, T, 1]
            parts.append((vectors - known * self.mean) / self.deviation)
        return torch.cat(parts, dim=2) if len(parts) > 1 else parts[0], torch.tensor(lengths)

    def mix_penalty(self) -> Tensor | float:
        """The sum of squares of the scalar mix's weights before the softmax; 0 without layer states."""
        if self._states is None:
            return 0.0
        return torch.cat(list(self.mix.scalar_parameters)).square().sum()


class PaddedMix(torch.autograd.Function):
    """Weighted sums of the layers of frozen states, Σ_l w_l h_l, padded into one batch.

    Only the weights have gradients, ∂loss/∂w_l = ⟨∂loss/∂out, h_l⟩, so that states are read in place and never copied.
    """

    @staticmethod
    def forward(ctx: Any, weights: Tensor, states: Sequence[Tensor]) -> Tensor:
        """weights [L + 1], states [L + 1, n, 2P] for each of B sentences → [B, T, 2P], zeros after each n."""
        time, width = max(layers.shape[1] for layers in states), states[0].shape[2]
        flat = [layers.flatten(1) for layers in states]  # [L + 1, n · 2P] each
        mixed = torch.zeros(len(states), time, width)
        for row, layers in zip(mixed.flatten(1), flat, strict=True):
            torch.mv(layers.t(), weights, out=row[: layers.shape[1]])
        ctx.flat = flat
        return mixed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """gradient [B, T, 2P] → that of the weights [L + 1]."""
        weights = torch.zeros(len(ctx.flat[0]))
        for row, layers in zip(gradient.flatten(1), ctx.flat, strict=True):
            weights.addmv_(layers, row[: layers.shape[1]])
        return weights, None


def valid_mask(lengths: Tensor, device: torch.device) -> Tensor:
    """bool [B, T]: true inside the sentences of `lengths` [B], of which the longest has T words."""
    return torch.arange(int(lengths.max()), device=device) < lengths.to(device).unsqueeze(1)
