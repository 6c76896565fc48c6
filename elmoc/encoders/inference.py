"""Inference encoder: the layer states of sentences and windows, without autograd, in a chosen precision.

Letters: B sentences of a batch, T time, E word-vector width, P projection, L layers.
"""

import torch
from torch import Tensor

from elmoc.encoders import EncoderOutput, EncoderState
from elmoc.encoders.bidirectional import BidirectionalEncoder


class InferenceEncoder:
    """A bidirectional encoder prepared for inference; its weights must not change while it is in use.

    Args:
        encoder: on the device on which it computes.
        dtype: of the factors of matrix products, float32 or bfloat16.
    """

    def __init__(self, encoder: BidirectionalEncoder, *, dtype: torch.dtype = torch.float32) -> None:
        self._encoder = encoder.eval()
        self.dtype = dtype
        self.device = next(encoder.parameters()).device

    def __call__(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Layer states of whole sentences from zero state: float32 [B, L + 1, T, 2P], on the device.

        Args:
            vectors: [B, T, E], sentences with their `<s>` and `</s>`, padded at the end.
            lengths: int [B], `<s>` and `</s>` counted; what stands past a length means nothing in the result.
        """
        with torch.inference_mode(), self._autocast():
            return self._encoder(vectors.to(self.device), lengths.to(self.device)).float()

    def run(
        self, direction: str, vectors: Tensor, state: EncoderState | None = None, *, lengths: Tensor | None = None
    ) -> EncoderOutput:
        """One direction over a window, with its state carried.

        Args:
            direction: `forward` or `backward`.
            vectors: [B, T, E], in reading order.
            state: that after the window before; None is the state before any word.
            lengths: int [B], for batches padded at the end, or None.
        """
        if lengths is not None:
            lengths = lengths.to(self.device)
        with torch.inference_mode(), self._autocast():
            output = self._encoder.direction(direction)(vectors.to(self.device), state, lengths=lengths)
        return EncoderOutput([layer.float() for layer in output.layer_states], output.state)

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32)
