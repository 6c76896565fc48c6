"""LSTM inference: a stack of LSTM layers over whole sentences of any length, without padding, on the CPU.

The words of a batch are packed: step t holds those rows alone that are longer than t, the longest first. The layer
states are written where they belong in the result.

Letters: B rows, T time, N words of all rows together, P projection, C cell, L layers.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from elmoc.encoders import EncoderState
from elmoc.encoders.recurrence import LSTMState, RecurrenceOptions, RecurrenceWeights
from elmoc.kernels.inference import (
    SPARE_WORDS,
    InferenceKernels,
    PackedLayer,
    Rows,
    pack_bias,
    pack_projection,
    pack_step,
)


class LstmInference:
    """A `PreparedEncoder`: the layers' weights are copied, in the type and order in which they are multiplied.

    Args:
        layers: weights, in float32 on the CPU, and options of each layer.
        residual: whether the input of every layer but the first is added to its output.
        kernels: what runs a layer; its type is that of the factors of products.
    """

    def __init__(
        self,
        layers: Sequence[tuple[RecurrenceWeights, RecurrenceOptions]],
        *,
        residual: bool,
        kernels: InferenceKernels,
    ) -> None:
        self.residual = residual
        self._kernels = kernels
        with torch.no_grad():
            self._layers = [pack_layer(*layer, kernels.dtype) for layer in layers]

    def __call__(
        self,
        inputs: Tensor,
        lengths: Tensor,
        state: EncoderState | None,
        layer_states: Tensor,
        *,
        backward: bool,
        threads: int,
    ) -> EncoderState:
        """See `PreparedEncoder`; the state of a layer is an `LSTMState`."""
        order, rows, source = pack_rows(lengths.clamp(0, inputs.shape[1]), layer_states, backward=backward)
        width = self._layers[0].padded_input_size
        packed = torch.zeros(len(source) + SPARE_WORDS, width, dtype=self._kernels.dtype)
        packed[: len(source), : inputs.shape[2]] = inputs.flatten(0, 1)[source]
        after = []
        for index, layer in enumerate(self._layers):
            before = zero_state(layer, len(order)) if state is None else state.layers[index]
            hidden, cell = (tensor.float()[order].contiguous() for tensor in before)
            self._kernels.run(
                layer,
                rows,
                packed,
                (hidden, cell),
                layer_states[:, index : index + 2],
                residual=self.residual and index > 0,
                threads=threads,
            )
            after.append(
                LSTMState(*(torch.empty_like(tensor).index_copy_(0, order, tensor) for tensor in (hidden, cell)))
            )
        return EncoderState(tuple(after))


def pack_layer(weights: RecurrenceWeights, options: RecurrenceOptions, dtype: torch.dtype) -> PackedLayer:
    """A layer's weights as the kernels read them, with factors of products in `dtype`."""
    return PackedLayer(
        step=pack_step(weights.input, weights.hidden, dtype),
        projection=pack_projection(weights.projection, dtype),
        bias=pack_bias(weights.bias),
        norm_weight=None if weights.norm_weight is None else weights.norm_weight.detach().clone(),
        norm_bias=None if weights.norm_bias is None else weights.norm_bias.detach().clone(),
        input_size=weights.input.shape[1],
        projection_size=len(weights.projection),
        cell_size=weights.projection.shape[1],
        cell_clip=options.cell_clip,
        projection_clip=options.projection_clip,
        epsilon=options.norm_epsilon,
    )


def zero_state(layer: PackedLayer, batch: int) -> LSTMState:
    """The state before any word."""
    return LSTMState(torch.zeros(batch, layer.projection_size), torch.zeros(batch, layer.cell_size))


def pack_rows(lengths: Tensor, layer_states: Tensor, *, backward: bool) -> tuple[Tensor, Rows, Tensor]:
    """How a batch is packed.

    Args:
        lengths: int [B], none above T.
        layer_states: [B, L + 1, T, P], where results go.
        backward: whether rows are read from their last word to their first.

    Returns:
        order: int64 [B], the rows in the order in which they are packed.
        rows: for the kernels.
        source: int64 [N], of each packed word the index of its place in [B · T].
    """
    lengths, order = lengths.long().sort(descending=True, stable=True)
    steps = int(lengths[0]) if len(lengths) else 0
    step, row = (torch.arange(steps).unsqueeze(1) < lengths).nonzero(as_tuple=True)  # [N] each, step by step
    time = lengths[row] - 1 - step if backward else step
    active = torch.bincount(step, minlength=steps)
    places = order * layer_states.stride(0)
    return order, Rows(active, places, lengths, backward), order[row] * layer_states.shape[2] + time
