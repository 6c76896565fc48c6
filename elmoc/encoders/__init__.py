"""Encoders: the interface of the stack above an input layer, which makes the layer
states of one direction.

Letters: B streams or sentences of a batch, T time, P projection, L layers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

DIRECTIONS = ("forward", "backward")
# What stands between word vectors and an encoder: a trained projection to its width, or
# nothing.
InputLayerKind = Literal["projection", "identity"]


@dataclass(frozen=True)
class EncoderState:
    """What an encoder carries from one window to the next; only the encoder knows what
    each tensor is.
    """

    layers: tuple[tuple[Tensor, ...], ...]  # [B, …] of each layer, lowest first

    def map(self, fn: Callable[[Tensor], Tensor]) -> "EncoderState":
        """The state of `fn` of every tensor."""
        return EncoderState(
            tuple(tuple(fn(tensor) for tensor in layer) for layer in self.layers)
        )


@dataclass
class EncoderOutput:
    """What one direction makes of a window."""

    layer_states: list[
        Tensor
    ]  # L + 1 tensors [B, T, P]: the output of the input layer, then of each layer
    state: EncoderState  # after the last step


class SentenceWords(NamedTuple):
    """Where the words of B sentences are: M words in the order of the text."""

    first: Tensor  # int64 [B]: the first word of each sentence
    lengths: Tensor  # int64 [B]
    # int64 [M]: where the state of layer 0 of each word begins in the layer states
    places: Tensor
    strides: Tensor  # int64 [M]: from there to the state of the next layer


# One direction of an encoder with its weights as inference multiplies them, on the CPU
# (see `LstmInference`).
PreparedEncoder = Callable[..., EncoderState | None]


class Encoder(nn.Module, ABC):
    """One direction of an encoder, above its input layer.

    While `recompute` is set, training keeps only what each layer reads, and runs it
    again in the backward pass.
    """

    recompute = False
    masks_per_layer = 1

    def __init__(self, sizes: "EncoderSizes") -> None:
        super().__init__()
        self.dropout = sizes.dropout
        self._masks = (
            sizes.layers * self.masks_per_layer,
            sizes.projection_size,
        )  # how many, and P

    def draw_dropout_masks(
        self, batch: int, generator: torch.Generator | None = None
    ) -> list[Tensor | None]:
        """The dropout masks of a window, from the lowest layer up; None where nothing
        drops.

        Each is [B, P]: 0 where a coordinate is dropped for the whole window, else 1 /
        (1 − dropout).
        """
        count, size = self._masks
        if not self.dropout:
            return [None] * count
        weight = next(self.parameters())
        keep = torch.full((batch, size), 1 - self.dropout, device=weight.device)
        return [
            torch.bernoulli(keep, generator=generator).to(weight.dtype)
            / (1 - self.dropout)
            for _ in range(count)
        ]

    def own_masks(self, batch: int) -> list[Tensor | None]:
        """The masks of a window for which none are given: in training they are drawn,
        else nothing drops.
        """
        return (
            self.draw_dropout_masks(batch) if self.training else [None] * self._masks[0]
        )

    def recomputed(self, layer: Callable[..., Any]) -> Callable[..., Any]:
        """`layer`; in training, while `recompute` is set, what it keeps is made again
        in the backward pass.
        """
        if not (self.recompute and torch.is_grad_enabled()):
            return layer
        return partial(checkpoint, layer, use_reentrant=False, preserve_rng_state=False)

    def prepare(self, dtype: torch.dtype) -> PreparedEncoder | None:
        """What runs it fastest in inference, with factors of matrix products in
        `dtype`; None is `forward` itself.

        Its weights must not change while what is returned is in use.
        """
        return None

    @abstractmethod
    def forward(
        self,
        inputs: Tensor,
        state: EncoderState | None = None,
        *,
        lengths: Tensor | None = None,
        dropout_masks: Sequence[Tensor | None] | None = None,
    ) -> EncoderOutput:
        """The layer states of a window.

        Args:
            inputs: [B, T, P], from the input layer, in reading order.
            state: that after the window before; None is the state before any word.
            lengths: int [B], for batches padded at the end, or None.
            dropout_masks: from `draw_dropout_masks`, which is called in training where
                None is given.
        """


@dataclass(frozen=True, kw_only=True)
class EncoderSizes(ABC):
    """The settings that every encoder has; defaults are the paper's."""

    kind: ClassVar[str]  # its name in configs and model directories
    carries_state: ClassVar[bool] = (
        # whether what is read before a window, or a sentence, can change its states
        True
    )

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
            "one mask a window",
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

        `fast` chooses the fast implementation instead of the reference that it equals
        up to rounding.
        """

    @property
    @abstractmethod
    def description(self) -> str:
        """The encoder in a few words, e.g. `2 LSTM layers, projection 512, cell 4096`."""

    def implementation(
        self, *, fast: bool, device: torch.device, dtype: torch.dtype
    ) -> str:
        """What runs on a device in a type, e.g. `the fused recurrence (…)`."""
        return "PyTorch's own layers"
