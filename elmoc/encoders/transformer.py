"""The Transformer encoder: self-attention over the words before (Vaswani et al. 2017;
Peters et al. 2018b).

One stack reads forward and another backward, as with the LSTM. Letters: B streams or
sentences of a batch, T time, P width of a layer, H heads, F width of the feed-forward
layer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.encoders import (
    Encoder,
    EncoderOutput,
    EncoderSizes,
    EncoderState,
    dropped,
)
from elmoc.errors import InputError


@dataclass(frozen=True, kw_only=True)
class TransformerSizes(EncoderSizes):
    """The settings of a Transformer; the defaults are from Peters et al. (2018b).

    GPT's are `layers = 12`, `projection_size = 768`, `heads = 12`, `feedforward_size =
    3072`.
    """

    kind: ClassVar[str] = "transformer"

    layers: Annotated[int, Meta(ge=1, le=1000, description="L")] = 6
    heads: Annotated[
        int, Meta(ge=1, le=2**10, description="of attention in each layer")
    ] = 8
    feedforward_size: Annotated[
        int,
        Meta(
            ge=1, le=2**20, description="width of the feed-forward part of each layer"
        ),
    ] = 2048

    def __post_init__(self) -> None:
        if self.projection_size % (2 * self.heads):
            raise InputError(
                "encoder.projection_size must be a multiple of 2 · encoder.heads "
                f"({2 * self.heads})"
            )

    def build(self, *, fast: bool) -> "Transformer":
        return Transformer(self)

    @property
    def description(self) -> str:
        return (
            f"Transformer of {self.layers} × {self.projection_size}, "
            f"{self.heads} heads, feed-forward {self.feedforward_size}"
        )


class Transformer(Encoder):
    """A stack of pre-norm Transformer layers (Xiong et al. 2020), with a layer norm at
    its end.

    It differs from the encoders that Li et al. (2019, Table 5) name: norms come before
    a layer; it has GELU, as GPT alone has, but not its learned positions; dropout has
    one mask a window; attention weights are not dropped.

    Word t of a window attends to words 0 … t of it. Nothing is carried from window to
    window: the window is the whole context. Positions are sinusoids, added to what the
    lowest layer reads; layer 0 of the layer states has none.
    """

    # a mask for the attention, and a mask for the feed-forward layer
    masks_per_layer = 2

    def __init__(self, sizes: TransformerSizes) -> None:
        super().__init__(sizes)
        self.layers = nn.ModuleList(
            TransformerLayer(sizes.projection_size, sizes.heads, sizes.feedforward_size)
            for _ in range(sizes.layers)
        )
        self.norm = nn.LayerNorm(sizes.projection_size)

    def forward(
        self,
        inputs: Tensor,
        state: EncoderState | None = None,
        *,
        dropout_masks: Sequence[Tensor | None] | None = None,
    ) -> EncoderOutput:
        """See `Encoder`; the state is empty."""
        masks = dropout_masks or self.draw_dropout_masks(*inputs.shape[:2])
        layer_states = [inputs]
        _, time, size = inputs.shape
        x = inputs + sinusoids(time, size, inputs.device).to(inputs.dtype)
        for index, layer in enumerate(self.layers):
            x = layer(x, masks[2 * index], masks[2 * index + 1])
            layer_states.append(x)
        layer_states[-1] = self.norm(x)
        return EncoderOutput(layer_states, EncoderState(tuple(() for _ in self.layers)))


class TransformerLayer(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x)), of P, H and F."""

    def __init__(self, size: int, heads: int, feedforward_size: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(size)
        self.queries_keys_values = nn.Linear(size, 3 * size)
        self.attention_output = nn.Linear(size, size)
        self.feedforward_norm = nn.LayerNorm(size)
        self.feedforward = nn.Linear(size, feedforward_size)
        self.feedforward_output = nn.Linear(feedforward_size, size)
        for name, weight in self.named_parameters():
            if weight.ndim > 1:
                nn.init.xavier_uniform_(weight)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)

    def forward(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        feedforward_mask: Tensor | None = None,
    ) -> Tensor:
        """[B, T, P] → [B, T, P]; the masks [B, P] are of dropout."""
        x = x + dropped(self.attend(self.attention_norm(x)), attention_mask)
        # [B, T, F]
        hidden = F.gelu(self.feedforward(self.feedforward_norm(x)))
        return x + dropped(self.feedforward_output(hidden), feedforward_mask)

    def attend(self, x: Tensor) -> Tensor:
        """Sums over each word and the words before it: [B, T, P] → [B, T, P]."""
        batch, time, size = x.shape
        shape = (batch, time, 3, self.heads, size // self.heads)
        heads = self.queries_keys_values(x).view(shape)
        # [B, H, T, P / H] each
        queries, keys, values = heads.permute(2, 0, 3, 1, 4)
        attended = attention(queries, keys, values).transpose(1, 2)
        return self.attention_output(attended.reshape(batch, time, size))


def attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """PyTorch's attention of each word to itself and the words before it."""
    # on a CPU the backward pass in bf16 takes 4 to 13 times as long as in float32 where
    # windows are short
    kind = (queries.device.type, queries.dtype, queries.requires_grad)
    if kind == ("cpu", torch.bfloat16, True):
        with torch.autocast("cpu", enabled=False):
            return F.scaled_dot_product_attention(
                queries.float(), keys.float(), values.float(), is_causal=True
            ).to(values.dtype)
    return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)


def sinusoids(time: int, size: int, device: torch.device) -> Tensor:
    """float32 [T, P]: sin(t / 10000^(2i/P)) in column 2i and the cosine in 2i + 1
    (Vaswani et al. 2017).
    """
    columns = torch.arange(0, size, 2, dtype=torch.float32, device=device)
    rates = torch.exp(columns * (-math.log(10_000) / size))
    # [T, P / 2]
    angles = torch.arange(time, device=device).unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
