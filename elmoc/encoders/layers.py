"""Layers: what encoders made of PyTorch's own layers have in common.

Letters: B streams or sentences of a batch, T time, P width of a layer.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def dropped(states: Tensor, mask: Tensor | None) -> Tensor:
    """States [B, T, P] times a dropout mask [B, P], where there is one."""
    return states if mask is None else states * mask.unsqueeze(1)


def run_padded(
    layer: nn.RNNBase, inputs: Tensor, state: Any, lengths: Tensor | None
) -> tuple[Tensor, Any]:
    """One of PyTorch's recurrent layers over a batch that is padded at the end.

    Args:
        layer: of one level and one direction, batch first.
        inputs: [B, T, P].
        state: the layer's own, before the first word; None is zero.
        lengths: int [B], at least 1; None where nothing is padded.

    Returns:
        Outputs [B, T, P], zero past a length, and the state after the last word of each
        row.
    """
    kind = inputs.device.type
    if kind != "cpu" and torch.is_autocast_enabled(kind):
        # autocast would run the layer in float16 on a GPU, which loses small gradients
        with torch.autocast(kind, enabled=False):
            return run_padded(layer, inputs.float(), state, lengths)
    if lengths is None:
        outputs, after = layer(inputs, state)
        return outputs, after
    packed = pack_padded_sequence(
        inputs, lengths.cpu(), batch_first=True, enforce_sorted=False
    )
    read, after = layer(packed, state)
    outputs, _ = pad_packed_sequence(
        read, batch_first=True, total_length=inputs.shape[1]
    )
    return outputs, after
