"""What is the encoder: which modules stand between word vectors and layer states?

Letters as in the project: B streams or batch, T time, E word-vector width, P projection, C cell, L layers.
Source: Li et al. 2019, Section 4.1 (ELMo's LSTM with projection, layer norm after the projection, frozen word vectors
as the input layer).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from elmoc.encoders.recurrence import LSTMState, Recurrence, RecurrenceWeights, plain, plain_recurrence
from elmoc.errors import InputError

DIRECTIONS = ("forward", "backward")


@dataclass(frozen=True)
class EncoderSizes:
    """The sizes of an encoder that are chosen; the defaults are the paper's."""

    projection_size: int = 512
    cell_size: int = 4096
    layers: int = 2
    cell_clip: float = 3.0
    projection_clip: float = 3.0
    dropout: float = 0.1
    layer_norm: bool = True
    residual: bool = True

    def __post_init__(self) -> None:
        for name in ("projection_size", "cell_size", "layers"):
            if getattr(self, name) < 1:
                raise InputError(f"encoder.{name} must be at least 1, not {getattr(self, name)}")
        if not 0 <= self.dropout < 1:
            raise InputError(f"encoder.dropout must be at least 0 and below 1, not {self.dropout}")
        for name in ("cell_clip", "projection_clip"):
            if getattr(self, name) < 0:
                raise InputError(f"encoder.{name} must be 0 (no clip) or more, not {getattr(self, name)}")


@dataclass(frozen=True)
class EncoderConfig(EncoderSizes):
    """An encoder whole: the chosen sizes, and the width of the word vectors that it reads."""

    word_vector_size: int = 300

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "EncoderConfig":
        """From the `encoder` object of a model directory; unknown keys are an `InputError`."""
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise InputError(f"unknown encoder settings: {', '.join(unknown)}")
        return cls(**values)


@dataclass
class EncoderOutput:
    """What one direction makes of a window."""

    layer_states: list[Tensor]
    """L + 1 tensors [B, T, P]: the normalised input projection, then each layer's output after the residual."""
    state: list[LSTMState]
    """One a layer: the state after the last step."""

    @property
    def top(self) -> Tensor:
        """[B, T, P]: what the head reads."""
        return self.layer_states[-1]


class ProjectedLSTMLayer(nn.Module):
    """An LSTM layer with projection, clips, and layer normalisation and dropout inside the recurrence.

    Args:
        input_size: width of what it reads (P in a stack).
        projection_size: P.
        cell_size: C.
        cell_clip, projection_clip: 0 switches a clip off.
        layer_norm: without it the layer equals AllenNLP's `LstmCellWithProjection`.
        recurrence: the function that steps through time.
    """

    def __init__(
        self,
        *,
        input_size: int,
        projection_size: int,
        cell_size: int,
        cell_clip: float = 3.0,
        projection_clip: float = 3.0,
        layer_norm: bool = True,
        recurrence: Recurrence = plain_recurrence,
    ) -> None:
        super().__init__()
        self.cell_size = cell_size
        self.projection_size = projection_size
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        self.recurrence = recurrence
        self.input_weight = nn.Parameter(torch.empty(4 * cell_size, input_size))  # W_x, gates i f g o
        self.hidden_weight = nn.Parameter(torch.empty(4 * cell_size, projection_size))  # W_h
        self.bias = nn.Parameter(torch.empty(4 * cell_size))
        self.projection_weight = nn.Parameter(torch.empty(projection_size, cell_size))  # W_p
        self.norm = nn.LayerNorm(projection_size) if layer_norm else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """W_x and W_h orthogonal gate by gate, biases zero but for the forget gate's 1, W_p uniform ±1/√C."""
        with torch.no_grad():
            for weight in (self.input_weight, self.hidden_weight):
                for gate in weight.chunk(4):
                    nn.init.orthogonal_(gate)
            self.bias.zero_()
            self.bias[self.cell_size : 2 * self.cell_size] = 1.0
            nn.init.uniform_(self.projection_weight, -(self.cell_size**-0.5), self.cell_size**-0.5)

    def zero_state(self, batch: int) -> LSTMState:
        """The state before any word: hidden [B, P] and cell [B, C]."""
        return LSTMState(self.bias.new_zeros(batch, self.projection_size), self.bias.new_zeros(batch, self.cell_size))

    def forward(
        self,
        inputs: Tensor,
        state: LSTMState | None = None,
        *,
        lengths: Tensor | None = None,
        dropout_mask: Tensor | None = None,
    ) -> tuple[Tensor, LSTMState]:
        """inputs [B, T, input_size] → outputs [B, T, P] and the state after the last step.

        `dropout_mask` and `lengths` as in `plain_recurrence`.
        """
        return self.recurrence(
            inputs,
            self.zero_state(len(inputs)) if state is None else state,
            RecurrenceWeights(
                self.input_weight,
                self.hidden_weight,
                self.bias,
                self.projection_weight,
                None if self.norm is None else self.norm.weight,
                None if self.norm is None else self.norm.bias,
            ),
            cell_clip=self.cell_clip,
            projection_clip=self.projection_clip,
            norm_epsilon=0.0 if self.norm is None else self.norm.eps,
            dropout_mask=dropout_mask,
            lengths=lengths,
        )


class DirectionalEncoder(nn.Module):
    """One direction: input projection and a stack of layers. It reads its words in its own reading order.

    `recurrence` gives each layer the function that it steps through time with. While `recompute` is set, training keeps
    only what each layer reads, and runs it again in the backward pass: less memory for a third more time.
    """

    def __init__(self, config: EncoderConfig, *, recurrence: Callable[[], Recurrence] = plain) -> None:
        super().__init__()
        self.residual = config.residual
        self.dropout = config.dropout
        self.recompute = False
        self.input_projection = nn.Linear(config.word_vector_size, config.projection_size)
        self.input_norm = nn.LayerNorm(config.projection_size)
        self.layers = nn.ModuleList(
            ProjectedLSTMLayer(
                input_size=config.projection_size,
                projection_size=config.projection_size,
                cell_size=config.cell_size,
                cell_clip=config.cell_clip,
                projection_clip=config.projection_clip,
                layer_norm=config.layer_norm,
                recurrence=recurrence(),
            )
            for _ in range(config.layers)
        )

    def draw_dropout_masks(self, batch: int, generator: torch.Generator | None = None) -> list[Tensor | None]:
        """One mask a layer for a window, from the lowest layer up.

        Each is [B, P], zero where a coordinate of h is dropped for the whole window and 1 / (1 - dropout) elsewhere;
        None where nothing is ever dropped.
        """
        if not self.dropout:
            return [None] * len(self.layers)
        weight = self.input_projection.bias
        keep = torch.full((batch, len(weight)), 1 - self.dropout, device=weight.device)
        return [torch.bernoulli(keep, generator=generator).to(weight.dtype) / (1 - self.dropout) for _ in self.layers]

    def forward(
        self,
        vectors: Tensor,
        state: list[LSTMState] | None = None,
        *,
        lengths: Tensor | None = None,
        dropout_masks: Sequence[Tensor | None] | None = None,
    ) -> EncoderOutput:
        """vectors [B, T, E], in reading order → `EncoderOutput`.

        `state` None is the zero state; `dropout_masks` are from `draw_dropout_masks`, which is called in training where
        None is given.
        """
        if dropout_masks is None and self.training:
            dropout_masks = self.draw_dropout_masks(len(vectors))
        recompute = self.recompute and torch.is_grad_enabled()
        inputs = self.input_norm(self.input_projection(vectors))  # a_t [B, T, P]
        layer_states, new_state = [inputs], []
        for index, layer in enumerate(self.layers):
            run = partial(checkpoint, layer, use_reentrant=False, preserve_rng_state=False) if recompute else layer
            outputs, layer_state = run(
                inputs,
                None if state is None else state[index],
                lengths=lengths,
                dropout_mask=None if dropout_masks is None else dropout_masks[index],
            )
            if self.residual and index > 0:
                outputs = outputs + inputs
            layer_states.append(outputs)
            new_state.append(layer_state)
            inputs = outputs
        return EncoderOutput(layer_states, new_state)


class BidirectionalEncoder(nn.Module):
    """The directions of a model, one `DirectionalEncoder` each, without any weight in common."""

    def __init__(
        self,
        config: EncoderConfig,
        *,
        directions: tuple[str, ...] = DIRECTIONS,
        recurrence: Callable[[], Recurrence] = plain,
    ) -> None:
        super().__init__()
        self.config = config
        self.directions = directions
        for direction in directions:
            self.add_module(direction_name(direction), DirectionalEncoder(config, recurrence=recurrence))

    def direction(self, name: str) -> DirectionalEncoder:
        """The encoder of one direction."""
        module = getattr(self, direction_name(name))
        assert isinstance(module, DirectionalEncoder)
        return module

    @property
    def width(self) -> int:
        """The width of the layer states: 2P, or P for a model of one direction."""
        return len(self.directions) * self.config.projection_size

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Layer states of whole sentences from zero state.

        Args:
            vectors: [B, T, E], sentences with their `<s>` and `</s>`, padded at the end.
            lengths: int [B], `<s>` and `</s>` counted.

        Returns:
            [B, L + 1, T, 2P] (forward ‖ backward), aligned with `vectors`; what stands past a length means nothing.
        """
        states = []
        for direction in self.directions:
            encoder = self.direction(direction)
            # padding stands at the end in both reading orders, so it never reaches a word
            backward = direction == "backward"
            output = encoder(reverse_padded(vectors, lengths) if backward else vectors)
            layers = [reverse_padded(layer, lengths) if backward else layer for layer in output.layer_states]
            states.append(torch.stack(layers, dim=1))  # [B, L + 1, T, P]
        return torch.cat(states, dim=-1)


def direction_name(direction: str) -> str:
    """The module (and so the parameter prefix) of a direction; a bare `forward` is taken in every module."""
    return f"{direction}_lm"


def reverse_padded(values: Tensor, lengths: Tensor) -> Tensor:
    """[B, T, …] with the first `lengths[b]` steps of every row reversed and the padding left where it is."""
    steps = torch.arange(values.shape[1], device=values.device)  # [T]
    lengths = lengths.unsqueeze(1)  # [B, 1]
    source = torch.where(steps < lengths, lengths - 1 - steps, steps)  # [B, T]
    return values[torch.arange(len(values), device=values.device).unsqueeze(1), source]
