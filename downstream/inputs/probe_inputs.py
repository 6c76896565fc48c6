"""Inputs of a probe for a batch of sentences: scalar mixes of layer states and word
vectors, padded.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from allennlp_light.nn.util import get_mask_from_sequence_lengths
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding, normalize

from downstream.inputs.options import AS_THEY_ARE, StateSettings, layer_rows
from downstream.inputs.sentence import TaskSentence
from downstream.inputs.sources import InputSources
from elmoc.modules import ScalarMix

# Sentences that are enough to tell how large states are.
MATCHED = 1_000


class ProbeInputs(torch.nn.Module):
    """The inputs of one probe: the scalar mix of the layer states and the word vectors,
    side by side.

    The mix is ELMo's (Peters et al. 2018, equation 1): softmax weights over the layers
    and one scale, all trained. It is computed on the CPU, where the states are, so that
    only its result goes to another device.

    Args:
        sources: word vectors and layer states of the sentences of a run.
        settings: how layer states are mixed.

    Attributes:
        sizes: of its parts: 2P, or 0 without layer states, and those of the sources of
            word vectors.
        size: D, their sum.

    Raises:
        InputError: the settings name a missing layer.
    """

    table: Tensor
    known: Tensor
    mean: Tensor
    deviation: Tensor

    def __init__(
        self, sources: InputSources, settings: StateSettings = AS_THEY_ARE
    ) -> None:
        super().__init__()
        self._words = sources.words
        self._states = sources.states
        self.sizes = [0]
        if sources.states is not None:
            self._layers = layer_rows(settings.state_layers, sources.states.names)
            self.mix = ScalarMix(len(self._layers))
            self.sizes = [sources.states.width]
        if sources.words is not None:
            words = sources.words
            width = words.vectors.shape[1]
            # They are not saved with the probe: other sentences have other words.
            self.register_buffer("table", words.padded, persistent=False)  # [W + 1, E]
            self.register_buffer("known", words.known, persistent=False)  # [W + 1, S]
            # See `WordTable.distribution`; the mean is [S, E].
            self.register_buffer("mean", torch.zeros(words.known.shape[1], width))
            self.register_buffer("deviation", torch.ones(width))  # [E]
            self.sizes += words.sizes
        self.size = sum(self.sizes)

    def standardise_words(self, sentences: Sequence[TaskSentence]) -> None:
        """Centre word vectors, and scale each source's to variance 1 over the distinct
        words of `sentences`.

        Vectors learned from little text share one large direction and have small
        numbers, from which a task model learns slowly. A word without a vector stays
        zero. Mean and deviation are kept with the probe's weights.
        """
        if self._words is not None:
            mean, deviation = self._words.distribution(sentences)
            self.mean.copy_(mean)
            self.deviation.copy_(deviation)

    @torch.no_grad()
    def match_words(self, sentences: Sequence[TaskSentence]) -> None:
        """Scale word vectors to the root mean square of the layer states beside them,
        mixed as they are now.

        It is taken over at most `MATCHED` of the sentences. An encoder's states are
        often small beside vectors of variance 1, so that a probe would learn from the
        vectors first, and by heart.
        """
        if self._words is None or self._states is None:
            return
        width = self._states.width
        states = vectors = 0.0
        for sentence in sentences[:: math.ceil(len(sentences) / MATCHED)]:
            x, _ = self([sentence])
            states += float(x[..., :width].square().sum()) / width
            vectors += float(x[..., width:].square().sum()) / (self.size - width)
        # Where one of them is zero, there is nothing to match.
        if states and vectors:
            self.deviation *= math.sqrt(vectors / states)

    def forward(self, sentences: Sequence[TaskSentence]) -> tuple[Tensor, Tensor]:
        """The inputs of a batch.

        Returns:
            float32 [B, T, D], zeros after the end of a sentence, and the lengths, int64
            [B] on the CPU.
        """
        parts = []
        if self._states is not None:
            parts.append(self._mixed(sentences))
        if self._words is not None:
            rows = self._words.rows(sentences).to(self.table.device)
            vectors = embedding(rows, self.table)  # [B, T, E]
            known = embedding(rows, self.known)  # [B, T, S]
            # Only words that a source knows are centred by its mean.
            parts.append((vectors - known @ self.mean) / self.deviation)
        x = torch.cat(parts, dim=2) if len(parts) > 1 else parts[0]
        return x, torch.tensor([len(sentence.words) for sentence in sentences])

    def with_unit_words(self, x: Tensor) -> Tensor:
        """Inputs [B, T, D] with each word vector of each source at unit length."""
        states, *words = x.split(self.sizes, dim=2)
        return torch.cat([states, *(normalize(each, dim=2) for each in words)], dim=2)

    def _mixed(self, sentences: Sequence[TaskSentence]) -> Tensor:
        """float32 [B, T, 2P] on the device of the mix's weights."""
        assert self._states is not None
        states = self._states.lookup(sentences)  # [L + 1, n, 2P] each
        # Rows in another order are copied, which views of a file are not.
        if self._layers != list(range(self._states.layers)):
            states = [layers[self._layers] for layers in states]
        weights = self.mix.gamma * self.mix.weights.softmax(0)  # [L + 1]
        mixed: Tensor = PaddedMix.apply(weights.cpu(), states)
        return mixed.to(weights.device)

    def mix_weights(self) -> list[float] | None:
        """The weight of each layer that is mixed, which sum to 1, and the scale γ; None
        without layer states.
        """
        if self._states is None:
            return None
        return [*self.mix.weights.softmax(0).tolist(), self.mix.gamma.item()]

    def mix_parameters(self) -> list[torch.nn.Parameter]:
        """The weights of the mix before the softmax, and its scale γ; none without
        layer states.
        """
        return [] if self._states is None else list(self.mix.parameters())

    def mix_penalty(self) -> Tensor | float:
        """The sum of squares of the scalar mix's weights before the softmax; 0 without
        layer states.
        """
        return 0.0 if self._states is None else self.mix.weights.square().sum()


class PaddedMix(torch.autograd.Function):
    """Weighted sums of the layers of frozen states, Σ_l w_l h_l, padded into one batch.

    Only the weights have gradients, ∂loss/∂w_l = ⟨∂loss/∂out, h_l⟩, so that states are
    read in place and never copied.
    """

    @staticmethod
    def forward(ctx: Any, weights: Tensor, states: Sequence[Tensor]) -> Tensor:
        """The sums of a batch.

        Args:
            ctx: of autograd.
            weights: [L + 1].
            states: [L + 1, n, 2P] for each of B sentences.

        Returns:
            [B, T, 2P], zeros after each n.
        """
        time = max(layers.shape[1] for layers in states)
        width = states[0].shape[2]
        flat = [layers.flatten(1) for layers in states]  # [L + 1, n · 2P] each
        mixed = torch.zeros(len(states), time, width)
        for row, layers in zip(mixed.flatten(1), flat, strict=True):
            torch.mv(layers.t(), weights, out=row[: layers.shape[1]])
        ctx.flat = flat
        return mixed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """gradient [B, T, 2P] → the gradient of the weights [L + 1]."""
        weights = torch.zeros(len(ctx.flat[0]))
        for row, layers in zip(gradient.flatten(1), ctx.flat, strict=True):
            weights.addmv_(layers, row[: layers.shape[1]])
        return weights, None


def valid_mask(lengths: Tensor, device: torch.device) -> Tensor:
    """bool [B, T]: true inside the sentences, whose `lengths` are [B]."""
    return get_mask_from_sequence_lengths(lengths.to(device), int(lengths.max()))
