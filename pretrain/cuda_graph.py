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
from pretrain.setup import TrainingSetup


def graphed(
    encoder: DirectionEncoder, setup: TrainingSetup
) -> Callable[..., EncoderOutput]:
    """The encoder of a direction by graphs where they are faster, on a GPU; elsewhere
    itself.

    It is called while no other thread uses the GPU, or nothing could be recorded.
    """
    train = setup.config.train
    on_gpu = setup.execution.device.type == "cuda"
    # a graph takes no gradients to a network that makes vectors
    if not on_gpu or not encoder.encoder.graphable or setup.input_network is not None:
        return encoder
    own = range(train.streams)[setup.processes.stream_slice(train.streams)]
    shape = (len(own), train.window, setup.encoder.config.word_vector_size)
    return GraphedEncoder(
        encoder, setup.execution, torch.zeros(shape, device=setup.execution.device)
    )


class GraphedEncoder:
    """One direction of an LSTM encoder, for windows of one size; its numbers are those
    of the encoder itself.

    What it returns, of the layer states the highest alone, holds until the next call.

    Args:
        encoder: of the direction, on a GPU.
        words: [B, T, E] like those of windows.
    """

    def __init__(
        self, encoder: DirectionEncoder, execution: Execution, words: Tensor
    ) -> None:
        masks = tuple(
            mask
            for mask in encoder.encoder.draw_dropout_masks(len(words))
            if mask is not None
        )
        module = _Window(encoder, execution)
        # what could be followed by a backward pass would bind the gradients to this
        # stream
        with torch.no_grad():
            _, layers = module(words, (), masks)
        self._start = tuple(
            tuple(torch.zeros_like(tensor) for tensor in layer) for layer in layers
        )
        # gradients are added up in the stream of the recording, as is meant
        warnings.filterwarnings(
            "ignore", message="The AccumulateGrad node's stream does not match"
        )
        # what windows bring is copied into these; tuples of tensors are taken, too,
        # whatever the annotation says
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
        masks = tuple(mask for mask in dropout_masks if mask is not None)
        highest, layers = self._graphs(
            words, self._start if state is None else state.layers, masks
        )
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
        with self.execution.autocast(cache=False):  # as graphs ask for
            output = self.encoder(words, state, dropout_masks=masks or None)
        return output.layer_states[-1], output.state.map(Tensor.detach).layers
