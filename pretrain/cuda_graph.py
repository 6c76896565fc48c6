"""CUDA graphs: the kernels of an LSTM's window, launched together.

A window is hundreds of kernels of some microseconds, and the host takes longer to
launch each than a GPU to run it. Two graphs, of the forward and of the backward pass,
are recorded once and launched for every window.
Letters: B streams, T time, E word-vector width, P projection.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from elmoc.encoders import EncoderOutput, EncoderState
from elmoc.encoders.bidirectional import DirectionEncoder
from pretrain.execution import Execution


def graphed(
    encoder: DirectionEncoder, execution: Execution, shape: tuple[int, int, int]
) -> Callable[..., EncoderOutput]:
    """The encoder of a direction by graphs where they are faster, on a GPU; elsewhere
    itself.

    It is called while no other thread uses the GPU, or nothing could be recorded.

    Args:
        encoder: of the direction.
        execution: where and how precisely it computes.
        shape: [B, T, E] of the word vectors of a window.
    """
    if execution.device.type != "cuda" or not encoder.encoder.graphable:
        return encoder
    return GraphedEncoder(
        encoder, execution, torch.zeros(shape, device=execution.device)
    )


class GraphedEncoder:
    """One direction of an LSTM encoder, for windows of one size; its numbers are those
    of the encoder itself.

    It returns the layer states of the highest layer alone, which hold until the next
    call.

    Args:
        encoder: of the direction, on a GPU.
        execution: how precisely it computes.
        words: [B, T, E] like those of windows.
    """

    def __init__(
        self, encoder: DirectionEncoder, execution: Execution, words: Tensor
    ) -> None:
        masks = _without_none(encoder.encoder.draw_dropout_masks(*words.shape[:2]))
        module = _Window(encoder, execution)
        # a trial that could be followed by a backward pass would bind the gradients to
        # the current stream, in which graphs cannot be recorded
        with torch.no_grad():
            _, layers = module(words, (), masks)
        self._start = EncoderState(layers).map(torch.zeros_like).layers
        # gradients are added up in the stream of the recording, as is meant
        warnings.filterwarnings(
            "ignore", message="The AccumulateGrad node's stream does not match"
        )
        # Windows are copied into these tensors. Tuples of tensors are taken, too,
        # whatever the annotation of PyTorch says.
        sample: Any = (words, layers, masks)
        self._graphs: Any = torch.cuda.make_graphed_callables(module, sample)

    def __call__(
        self,
        words: Tensor,
        state: EncoderState | None,
        *,
        dropout_masks: Sequence[Tensor | None],
    ) -> EncoderOutput:
        """Words [B, T, E], the state before them, and masks → the highest layer's
        states [B, T, P], and the state.
        """
        before = self._start if state is None else state.layers
        highest, layers = self._graphs(words, before, _without_none(dropout_masks))
        return EncoderOutput([highest], EncoderState(layers))


class _Window(nn.Module):
    """An encoder's window as a function of tensors alone; no state and no masks are
    `()`.
    """

    def __init__(self, encoder: DirectionEncoder, execution: Execution) -> None:
        super().__init__()
        self.encoder = encoder
        self.execution = execution

    def forward(
        self,
        words: Tensor,
        layers: tuple[tuple[Tensor, ...], ...],
        masks: tuple[Tensor, ...],
    ) -> tuple[Tensor, tuple[tuple[Tensor, ...], ...]]:
        state = EncoderState(layers) if layers else None
        # a cached weight in bf16 would be made once, while the graph is recorded, and
        # not follow the updates
        with self.execution.autocast(cache=False):
            output = self.encoder(words, state, dropout_masks=masks or None)
        return output.layer_states[-1], output.state.map(Tensor.detach).layers


def _without_none(masks: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """The masks of the layers that have one, as graphs take them."""
    return tuple(mask for mask in masks if mask is not None)
