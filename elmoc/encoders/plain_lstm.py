"""The plain LSTM encoder: PyTorch's own layers, without projection (Grave et al. 2017;
Li et al. 2019, Section 5.2.2).

Letters: B streams or sentences of a batch, T time, P width of a layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmoc.encoders import Encoder, EncoderOutput, EncoderSizes, EncoderState


@dataclass(frozen=True, kw_only=True)
class PlainLstmSizes(EncoderSizes):
    """The settings of a plain LSTM; the defaults are the paper's LSTM, and with two
    layers its LSTMx2.
    """

    kind: ClassVar[str] = "plain_lstm"

    projection_size: Annotated[int, Meta(ge=1, le=2**20)] = 2048
    layers: Annotated[int, Meta(ge=1, le=1000)] = 1

    def build(self, *, fast: bool, recompute: bool = False) -> "PlainLstm":
        return PlainLstm(self, recompute=recompute)

    @property
    def description(self) -> str:
        return f"plain LSTM of {self.layers} × {self.projection_size}"


class PlainLstm(Encoder):
    """A stack of LSTM layers; what each puts out, but for the carried state, is dropped
    out with one mask a window.
    """

    def __init__(self, sizes: PlainLstmSizes, *, recompute: bool = False) -> None:
        super().__init__(sizes, recompute=recompute)
        size = sizes.projection_size
        self.layers = nn.ModuleList(
            nn.LSTM(size, size, batch_first=True) for _ in range(sizes.layers)
        )

    def forward(
        self,
        inputs: Tensor,
        state: EncoderState | None = None,
        *,
        lengths: Tensor | None = None,
        dropout_masks: Sequence[Tensor | None] | None = None,
    ) -> EncoderOutput:
        """See `Encoder`; the state of a layer is hidden [B, P] and cell [B, P]."""
        masks = dropout_masks or self.own_masks(len(inputs))
        layer_states = [inputs]
        after = []
        for index, (layer, mask) in enumerate(zip(self.layers, masks, strict=True)):
            assert isinstance(layer, nn.LSTM)
            before = None if state is None else state.layers[index]
            outputs, *carried = self.recomputed(run_layer)(
                layer, inputs, before, lengths
            )
            inputs = outputs if mask is None else outputs * mask.unsqueeze(1)
            layer_states.append(inputs)
            after.append(tuple(carried))
        return EncoderOutput(layer_states, EncoderState(tuple(after)))


def run_layer(
    layer: nn.LSTM,
    inputs: Tensor,
    state: tuple[Tensor, ...] | None,
    lengths: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs [B, T, P], and hidden and cell state [B, P] after the last word of each
    row.

    On a GPU it computes in float32 under autocast, too, which would run it in float16
    there and lose small gradients.
    """
    if inputs.is_cuda and torch.is_autocast_enabled("cuda"):
        exact = None if state is None else tuple(each.float() for each in state)
        with torch.autocast("cuda", enabled=False):
            return run_layer(layer, inputs.float(), exact, lengths)
    before = None if state is None else tuple(each.unsqueeze(0) for each in state)
    if lengths is None:
        outputs, (hidden, cell) = layer(inputs, before)
    else:
        packed = pack_padded_sequence(
            inputs, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        read, (hidden, cell) = layer(packed, before)
        outputs, _ = pad_packed_sequence(
            read, batch_first=True, total_length=inputs.shape[1]
        )
    return outputs, hidden[0], cell[0]
