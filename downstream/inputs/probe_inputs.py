"""Inputs of probes: sources that all probes of a command share, and the padded batches of one probe.

`InputSources` are opened and checked once for all sentences of a run; `ProbeInputs` has the trained part, the scalar
mix. Another way to get layer states is another `LayerStates`.
"""

import math
from argparse import Namespace
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from allennlp_light.modules.scalar_mix import ScalarMix
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import dropout, embedding, layer_norm

from downstream.inputs.feature_states import FeatureStates
from downstream.inputs.kinds import SEPARATOR, InputKind
from downstream.inputs.model_states import ModelStates
from downstream.inputs.sentence import Sentence
from downstream.inputs.state_settings import AS_THEY_ARE, StateSettings, layer_rows
from downstream.inputs.word_table import WordTable
from elmoc.errors import InputError

MATCHED = 1_000
"""Sentences that tell how large states are."""


class LayerStates(Protocol):
    """Layer states of the sentences of a run.

    names  what each of the layers is called: its number in the encoder, where that is known
    """

    layers: int
    names: list[str]
    width: int

    def lookup(self, sentences: Sequence[Sentence]) -> list[Tensor]:
        """float32 [layers, n, width] on the CPU for each sentence; not to be written to."""

    def describe(self) -> dict[str, Any]:
        """What a line of results says about where the states come from."""


@dataclass(frozen=True)
class InputSources:
    """Where the inputs of a run come from; shared by all its probes."""

    words: WordTable | None
    states: LayerStates | None

    def select(self, kind: InputKind) -> "InputSources":
        """Those sources that the `kind` of inputs reads; all of them must be there."""
        assert self.words is not None or not kind.words
        assert self.states is not None or not kind.states
        return InputSources(words=self.words if kind.words else None, states=self.states if kind.states else None)

    def describe(self) -> dict[str, dict[str, Any] | None]:
        """The fields `features` and `vectors` of a line of results."""
        return {
            "features": None if self.states is None else self.states.describe(),
            "vectors": None if self.words is None else self.words.describe(),
        }


def open_sources(kinds: Collection[InputKind], *, sentences: Sequence[Sentence], options: Namespace) -> InputSources:
    """Look up what the kinds of inputs read for all sentences of a run, and print what it is.

    options  of the command: `vectors`, one or several; `features` or `model`, and how that is read: `model_vectors`,
             `pooling`, `memory_limit` (GB of its states that are kept) and `device`
    """
    vectors, features, model = options.vectors, options.features, options.model
    words: WordTable | None = None
    states: LayerStates | None = None
    if any(kind.states for kind in kinds):
        if model is not None:
            states = ModelStates(
                model,
                sentences=sentences,
                memory_limit=options.memory_limit * 1e9,
                vectors=options.model_vectors,
                pooling=options.pooling,
                device=options.device,
            )
        else:
            assert features is not None, "the command line names a source of layer states"
            states = FeatureStates(features, sentences=sentences)
        print(f"states {model or features}: {states.layers} layers of {states.width}", flush=True)
    if any(kind.words for kind in kinds):
        assert vectors is not None, "the command line names the word vectors"
        words = WordTable(*vectors, sentences=sentences)
        count, size = words.vectors.shape
        print(
            f"words  {SEPARATOR.join(vectors)}: {size} dimensions; "
            f"{words.missing:,} of {count:,} distinct words have none",
            flush=True,
        )
    return InputSources(words=words, states=states)


class ProbeInputs(torch.nn.Module):
    """The inputs of one probe: the scalar mix of the layer states and the word vectors, side by side.

    The mix is ELMo's (Peters et al. 2018, equation 1): softmax weights over the layers and one scale, all trained.
    It is computed on the CPU, where the states are, so that only its result goes to another device.
    `size` (D) is 2P + E, or that of the only input.

    The layers of a word can be normalised before (their section 3.2). allennlp's `ScalarMix` does so with the mean and
    variance of all words of a batch; here they are the word's own (Ba et al. 2016), whatever stands beside it.
    """

    table: Tensor
    known: Tensor
    sizes: Tensor
    mean: Tensor
    deviation: Tensor

    def __init__(self, sources: InputSources, settings: StateSettings = AS_THEY_ARE) -> None:
        """Raises `InputError` where there are not the layers that the settings name."""
        super().__init__()
        self._words = sources.words
        self._states = sources.states
        self._settings = settings
        self.size = 0
        if sources.states is not None:
            self._layers = layer_rows(settings.state_layers, sources.states.names)
            self.mix = ScalarMix(len(self._layers))
            self.size += sources.states.width
        if sources.words is not None:
            width = sources.words.vectors.shape[1]
            self.register_buffer("table", sources.words.padded, persistent=False)  # [W + 1, E]
            self.register_buffer("known", sources.words.known, persistent=False)  # [W + 1, S]
            self.register_buffer("sizes", torch.tensor(sources.words.sizes), persistent=False)
            self.register_buffer("mean", torch.zeros(width))
            self.register_buffer("deviation", torch.ones(() if len(sources.words.sizes) == 1 else width))
            self.size += width

    def standardise_words(self, sentences: Sequence[Sentence]) -> None:
        """Centre word vectors, and scale them to variance 1 over the distinct words of `sentences`.

        Vectors learned from little text share one large direction and have small numbers, from which a task model
        learns slowly. A word without a vector stays zero. Mean and deviation are kept with the probe's weights. Each
        source of vectors is scaled by itself.
        """
        if self._words is not None:
            mean, deviation = self._words.distribution(sentences)
            self.mean.copy_(mean)
            self.deviation.copy_(deviation)

    @torch.no_grad()
    def match_words(self, sentences: Sequence[Sentence]) -> None:
        """Scale word vectors to the root mean square of the layer states beside them, mixed as they are now.

        It is taken over `MATCHED` of the sentences at most. An encoder's states are often small beside vectors of
        variance 1, so that a probe would learn from the vectors first, and by heart.
        """
        if self._words is None or self._states is None:
            return
        width = self._states.width
        states = vectors = 0.0
        self.eval()  # dropout would make states larger
        for sentence in sentences[:: -(-len(sentences) // MATCHED)]:
            x, _ = self([sentence])
            states += float(x[..., :width].square().sum()) / width
            vectors += float(x[..., width:].square().sum()) / (self.size - width)
        self.train()
        if states and vectors:  # else there is nothing to match
            self.deviation *= math.sqrt(vectors / states)

    def forward(self, sentences: Sequence[Sentence]) -> tuple[Tensor, Tensor]:
        """float32 [B, T, D], zeros after the end of a sentence, and the lengths, int64 [B] on the CPU."""
        lengths = [len(sentence.words) for sentence in sentences]
        parts = []
        if self._states is not None:
            weights = self.mix.gamma * self._shares()  # [L + 1]
            mixed = PaddedMix.apply(weights.cpu(), self._layer_states(self._states, sentences))
            if not self.training:  # in training it is the loss that tells
                _require_finite(mixed, sentences)
            mixed = mixed.to(weights.device)  # [B, T, 2P]
            if self._settings.states_dropout:
                mixed = dropout(mixed, self._settings.states_dropout, self.training)
            parts.append(mixed)
        if self._words is not None:
            rows = self._words.rows(sentences, max(lengths)).to(self.table.device)
            vectors, known = embedding(rows, self.table), embedding(rows, self.known)  # [B, T, E], [B, T, S]
            if len(self.sizes) > 1:
                known = known.repeat_interleave(self.sizes, dim=2)  # [B, T, E]
            vectors = (vectors - known * self.mean) / self.deviation
            if self._states is not None and self.training and self._settings.vectors_dropout:
                kept = torch.rand(rows.shape, device=rows.device) >= self._settings.vectors_dropout  # [B, T]
                vectors = vectors * kept.unsqueeze(2)
            parts.append(vectors)
        return torch.cat(parts, dim=2) if len(parts) > 1 else parts[0], torch.tensor(lengths)

    def _layer_states(self, source: LayerStates, sentences: Sequence[Sentence]) -> list[Tensor]:
        """float32 [layers that are mixed, n, 2P] for each sentence; those of the source itself where all are mixed."""
        states = source.lookup(sentences)
        if self._layers != list(range(source.layers)):
            states = [layers[self._layers] for layers in states]
        if self._settings.normalise_states:
            states = [layer_norm(layers, (source.width,)) for layers in states]
        return states

    def _shares(self) -> Tensor:
        """float32 [layers that are mixed]: the weights of the mix, which sum to 1."""
        return torch.cat(list(self.mix.scalar_parameters)).softmax(dim=0)

    def mix_weights(self) -> list[float] | None:
        """The weight of each layer that is mixed, which sum to 1, and the scale γ; None without layer states."""
        return None if self._states is None else [*self._shares().tolist(), self.mix.gamma.item()]

    def mix_parameters(self) -> list[torch.nn.Parameter]:
        """The weights of the mix before the softmax, and its scale γ; none without layer states."""
        return [] if self._states is None else list(self.mix.parameters())

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


def _require_finite(mixed: Tensor, sentences: Sequence[Sentence]) -> None:
    """Raise an `InputError` for the first sentence whose mixed states [B, T, 2P] are not all finite."""
    if not mixed.sum().isfinite():
        for row, sentence in zip(mixed, sentences, strict=True):
            if not row.isfinite().all():
                raise InputError(
                    f"{sentence.file}, line {sentence.line}: the layer states of the sentence that begins here have "
                    "numbers that are not finite, or their mix has: make the features again, or train the probe again"
                )


def valid_mask(lengths: Tensor, device: torch.device) -> Tensor:
    """bool [B, T]: true inside the sentences of `lengths` [B], of which the longest has T words."""
    return torch.arange(int(lengths.max()), device=device) < lengths.to(device).unsqueeze(1)
