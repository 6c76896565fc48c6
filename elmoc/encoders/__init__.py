"""Encoders: the interface of the stack above an input layer, which makes the layer
states of one direction.

Letters: B streams or sentences of a batch, T time, P projection, L layers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Protocol

import torch
from msgspec import Meta
from torch import Tensor, nn

from elmoc.settings import Precision

DIRECTIONS = ("forward", "backward")
# What stands between word vectors and an encoder: a trained projection to its width, or
# nothing.
InputLayerKind = Literal["projection", "identity"]


@dataclass(frozen=True)
class EncoderState:
    """An encoder's state between one window and the next; only the encoder knows the
    meaning of each tensor.

    layers: the tensors [B, …] of each layer, lowest first.
    """

    layers: tuple[tuple[Tensor, ...], ...]

    def map(self, fn: Callable[[Tensor], Tensor]) -> "EncoderState":
        """The state of `fn` of every tensor."""
        return EncoderState(tuple(tuple(map(fn, layer)) for layer in self.layers))


@dataclass
class EncoderOutput:
    """The output of one direction for a window.

    layer_states: L + 1 tensors [B, T, P]: the output of the input layer, then of each
        layer.
    state: after the last step.
    """

    layer_states: list[Tensor]
    state: EncoderState


class PreparedEncoder(Protocol):
    """One direction of an encoder with its weights as inference multiplies them, on the
    CPU.
    """

    def __call__(
        self,
        layer_states: Tensor,
        lengths: Tensor,
        *,
        backward: bool,
        threads: int,
    ) -> None:
        """Write the states of the layers above the input layer; every sentence is read
        from zero state.

        Args:
            layer_states: float32 [L + 1, M, P], M words of all sentences, one behind
                the other; layer 0, from the input layer, is read.
            lengths: int64 [B], of the sentences.
            backward: whether every sentence is read from its last word to its first.
            threads: how many compute.
        """


class Encoder(nn.Module, ABC):
    """One direction of an encoder, above its input layer.

    Args:
        sizes: the settings of the encoder.
    """

    masks_per_layer = 1
    # of what the lowest layer reads
    masks_of_inputs = 0
    # whether each word has masks of its own, or a window the same for all its words
    masks_each_word = False
    # whether training gains by recording a window as a CUDA graph, because it is
    # hundreds of small kernels
    graphable = False

    def __init__(self, sizes: "EncoderSizes") -> None:
        super().__init__()
        self.sizes = sizes

    def implementation(self, device: torch.device, precision: Precision) -> str:
        """What runs in training on a device in a precision, e.g. `the fused recurrence
        (…)`.
        """
        return "PyTorch's own layers"

    def draw_dropout_masks(
        self, batch: int, time: int, generator: torch.Generator | None = None
    ) -> list[Tensor | None]:
        """The dropout masks of a window, from the lowest layer up; None where nothing
        drops, as in evaluation.

        Each is [B, P], or [B, T, P] with `masks_each_word`: 0 where a coordinate is
        dropped, else 1 / (1 − dropout).
        """
        sizes = self.sizes
        count = self.masks_of_inputs + sizes.layers * self.masks_per_layer
        if not (self.training and sizes.dropout):
            return [None] * count
        weight = next(self.parameters())
        words = (time,) if self.masks_each_word else ()
        keep = torch.full(
            (batch, *words, sizes.projection_size),
            1 - sizes.dropout,
            dtype=torch.float32,
            device=weight.device,
        )
        return [
            torch.bernoulli(keep, generator=generator).to(weight.dtype)
            / (1 - sizes.dropout)
            for _ in range(count)
        ]

    def is_prepared_for(self, precision: Precision) -> bool:
        """Whether `prepare` has something for a precision."""
        return False

    def prepare(self, precision: Precision) -> PreparedEncoder | None:
        """The encoder prepared for inference in a precision; None where nothing is
        faster than `forward`.

        Its weights must not change while the prepared encoder is in use.
        """
        return None

    @abstractmethod
    def forward(
        self,
        inputs: Tensor,
        state: EncoderState | None = None,
        *,
        dropout_masks: Sequence[Tensor | None] | None = None,
    ) -> EncoderOutput:
        """The layer states of a window.

        Args:
            inputs: [B, T, P], from the input layer, in reading order. A batch may be
                padded at its end: the states of a word depend on no word after it.
            state: that after the window before; None is the state before any word.
            dropout_masks: from `draw_dropout_masks`, which is called where None is
                given.
        """


@dataclass(frozen=True, kw_only=True)
class EncoderSizes(ABC):
    """The settings that every encoder has; defaults are `elmo_c.toml`'s."""

    kind: ClassVar[str]  # its name in configs and model directories

    projection_size: Annotated[
        int, Meta(ge=1, le=2**20, description="P, the width of each layer's states")
    ] = 512
    layers: Annotated[int, Meta(ge=1, le=1000, description="L")] = 2
    dropout: Annotated[
        float,
        Meta(
            ge=0,
            lt=1,
            description="share of each layer's states that training sets to zero, "
            "one mask a window (`plain_lstm`: one a word, and of its input, too)",
        ),
    ] = 0.1
    input_layer: Annotated[
        InputLayerKind,
        Meta(
            description="how word vectors come to P: `projection`, or `identity` "
            "where they are P wide"
        ),
    ] = "projection"

    @abstractmethod
    def build(self, *, fast: bool) -> Encoder:
        """The encoder of a direction, with random weights.

        Args:
            fast: chooses the fast implementation instead of the reference, which it
                equals up to rounding.
        """

    @property
    @abstractmethod
    def description(self) -> str:
        """The encoder in a few words: `2 LSTM layers, projection 512, cell 4096`."""


def dropped(states: Tensor, mask: Tensor | None) -> Tensor:
    """States [B, T, P] times a dropout mask [B, P] or [B, T, P], where there is one."""
    if mask is None:
        return states
    return states * (mask if mask.ndim == states.ndim else mask.unsqueeze(1))
