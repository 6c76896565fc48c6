"""The plain LSTM encoder: PyTorch's own layers, without projection (Grave et al. 2017;
Li et al. 2019, Section 5.2.2).

Letters: B streams or sentences of a batch, T time, P width of a layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from msgspec import Meta
from torch import Tensor, nn

from elmoc.encoders import (
    Encoder,
    EncoderOutput,
    EncoderSizes,
    EncoderState,
    dropped,
)


@dataclass(frozen=True, kw_only=True)
class PlainLstmSizes(EncoderSizes):
    """The settings of a plain LSTM; the defaults are the paper's LSTM, and with two
    layers its LSTMx2.
    """

    kind: ClassVar[str] = "plain_lstm"

    projection_size: Annotated[
        int, Meta(ge=1, le=2**20, description="P, the width of each layer's states")
    ] = 2048
    layers: Annotated[int, Meta(ge=1, le=1000, description="L")] = 1

    def build(self, *, fast: bool) -> "PlainLstm":
        return PlainLstm(self)

    @property
    def description(self) -> str:
        return f"plain LSTM of {self.layers} × {self.projection_size}"


class PlainLstm(Encoder):
    """A stack of LSTM layers; dropout is in what each of them reads and in what the
    highest gives, not in the states that they carry, with a mask a word (Zaremba et al.
    2014).
    """

    masks_of_inputs = 1
    masks_each_word = True

    def __init__(self, sizes: PlainLstmSizes) -> None:
        super().__init__(sizes)
        size = sizes.projection_size
        self.layers: Any = nn.ModuleList(
            nn.LSTM(size, size, batch_first=True) for _ in range(sizes.layers)
        )

    def forward(
        self,
        inputs: Tensor,
        state: EncoderState | None = None,
        *,
        dropout_masks: Sequence[Tensor | None] | None = None,
    ) -> EncoderOutput:
        """See `Encoder`; the state of a layer is hidden [B, P] and cell [B, P]."""
        masks = dropout_masks or self.draw_dropout_masks(*inputs.shape[:2])
        layer_states = [inputs]
        x = dropped(inputs, masks[0])
        new_state = []
        for index, layer in enumerate(self.layers):
            before = None
            if state is not None:
                before = tuple(each.unsqueeze(0) for each in state.layers[index])
            outputs, after = run_layer(layer, x, before)
            x = dropped(outputs, masks[index + 1])
            layer_states.append(x)
            new_state.append(tuple(each.squeeze(0) for each in after))
        return EncoderOutput(layer_states, EncoderState(tuple(new_state)))


def run_layer(layer: nn.RNNBase, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
    """One of PyTorch's recurrent layers over a window, on a GPU without autocast.

    Args:
        layer: of one level and one direction, batch first.
        inputs: [B, T, P].
        state: the layer's own, before the first word; None is zero.

    Returns:
        Outputs [B, T, P], and the state after the last word.
    """
    kind = inputs.device.type
    if kind != "cpu" and torch.is_autocast_enabled(kind):
        # autocast would run the layer in float16 on a GPU, which loses small gradients
        with torch.autocast(kind, enabled=False):
            return layer(inputs.float(), state)
    return layer(inputs, state)
