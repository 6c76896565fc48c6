"""LSTM inference: a stack of LSTM layers over whole sentences of any length, without padding, on the CPU.

A batch has rows that read one sentence behind the other, so that nearly all of them end together, and its words are
packed: step t holds those rows alone that have more than t words. The layer states are written where they belong.

Letters: B sentences, M words of the text, N words that are read, P projection, C cell, L layers.
"""

import heapq
from collections.abc import Sequence

import torch
from torch import Tensor

from elmoc.encoders import EncoderState, SentenceWords
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
        words: SentenceWords,
        layer_states: Tensor,
        *,
        state: EncoderState | None = None,
        carry: bool = False,
        backward: bool,
        threads: int,
    ) -> EncoderState | None:
        """Write the states of the layers above the input layer; the state of a layer is an `LSTMState`.

        Args:
            inputs: [M, P], from the input layer.
            words: those that are read, and where their states go.
            layer_states: float32, contiguous; what is of no word, and layer 0, is left as it is.
            state: before the first word of each sentence [B, …]; None is the state before any word.
            carry: whether to return the state after the last word of each sentence.
            backward: whether every sentence is read from its last word to its first.
            threads: that take part.
        """
        one_each = carry or state is not None
        first = self._layers[0]
        own_rows, starts = schedule(words.lengths, len(words.lengths) if one_each else most_rows(first))
        rows, source = pack_rows(words, own_rows, starts, backward=backward)
        packed = torch.zeros(len(source) + SPARE_WORDS, first.padded_input_size, dtype=self._kernels.dtype)
        packed[: len(source), : inputs.shape[1]] = inputs[source]
        after = []
        for index, layer in enumerate(self._layers):
            before = zero_state(layer, rows.size) if state is None else state.layers[index]
            hidden, cell = (
                tensor.float() if state is None else tensor.float()[own_rows.argsort()] for tensor in before
            )
            self._kernels.run(
                layer,
                rows,
                packed,
                (hidden, cell),
                layer_states,
                index=index + 1,
                residual=self.residual and index > 0,
                threads=threads,
            )
            if carry:
                after.append(LSTMState(hidden[own_rows], cell[own_rows]))
        return EncoderState(tuple(after)) if carry else None


def most_rows(layer: PackedLayer) -> int:
    """Rows whose factors stay in the second cache while the panels of a weight pass by."""
    width = layer.step[0].numel() // layer.bias[0].numel()
    return max(64, min(1024, 2**20 // (width * layer.step.itemsize)))


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


def schedule(lengths: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Which row reads each sentence, and from which step on: rows of nearly the same number of words, most first.

    Args:
        lengths: int64 [B].
        most: rows at most; with as many as there are sentences, each has its own.

    Returns:
        row: int64 [B].
        start: int64 [B], the step at which each sentence begins.
    """
    order = lengths.sort(descending=True, stable=True).indices
    if len(order) <= most:
        return order.argsort(), torch.zeros_like(order)
    sizes = lengths.tolist()
    totals = [(0, row) for row in range(min(most, max(1, -(-sum(sizes) // max(1, *sizes)))))]
    placed = [(0, 0)] * len(sizes)
    for index in order.tolist():  # the longest first, each to the row with the fewest words
        total, row = totals[0]
        placed[index] = (row, total)
        heapq.heapreplace(totals, (total + sizes[index], row))
    rank = {row: number for number, (_, row) in enumerate(sorted(totals, key=lambda each: (-each[0], each[1])))}
    rows = torch.tensor([rank[row] for row, _ in placed])
    return rows, torch.tensor([start for _, start in placed])


def pack_rows(words: SentenceWords, rows: Tensor, starts: Tensor, *, backward: bool) -> tuple[Rows, Tensor]:
    """The words of scheduled sentences, packed step by step, and int64 [N], of each the word of the text."""
    lengths = words.lengths
    sentence = torch.repeat_interleave(lengths)  # [N]: of each word, sentence by sentence
    number = torch.arange(len(sentence)) - (lengths.cumsum(0) - lengths)[sentence]
    step, row = starts[sentence] + number, rows[sentence]
    active = torch.bincount(step)
    place = (active.cumsum(0) - active)[step] + row
    read = words.first[sentence] + (lengths[sentence] - 1 - number if backward else number)
    source = torch.empty_like(read).index_copy_(0, place, read)
    begins = torch.zeros(len(read), dtype=torch.bool).index_copy_(0, place, (number == 0) & (step > 0))
    count = int(rows.max()) + 1 if len(rows) else 0
    return Rows(count, active, words.places[source], words.strides[source], begins), source
