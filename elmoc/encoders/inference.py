"""Inference encoder: the layer states of sentences and windows, without autograd, in a chosen precision.

Letters: B sentences of a batch, T time, E word-vector width, P projection, L layers.
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from elmoc.encoders import EncoderOutput, EncoderState, PreparedEncoder
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
        self._prepared: dict[str, PreparedEncoder] = {}
        for direction in encoder.directions:
            if (prepared := encoder.direction(direction).encoder.prepare(dtype)) is not None:
                self._prepared[direction] = prepared

    def __call__(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Layer states of whole sentences from zero state: float32 [B, L + 1, T, 2P], on the device.

        Args:
            vectors: [B, T, E], sentences with their `<s>` and `</s>`, padded at the end.
            lengths: int [B], `<s>` and `</s>` counted; what stands past a length means nothing in the result.
        """
        directions = self._encoder.directions
        if len(self._prepared) < len(directions):
            with torch.inference_mode(), self._autocast():
                return self._encoder(vectors.to(self.device), lengths.to(self.device)).float()
        sizes = self._encoder.config.sizes
        states = torch.empty(len(vectors), sizes.layers + 1, vectors.shape[1], self._encoder.width)
        parts = dict(zip(directions, states.split(sizes.projection_size, dim=-1), strict=True))
        # side by side each direction has its own cores, and its threads wait for nobody else's
        workers = min(len(directions), torch.get_num_threads())
        with ThreadPoolExecutor(workers) as pool:
            runs = [
                pool.submit(
                    self._run_prepared,
                    direction,
                    self._input_states(direction, vectors, part),
                    lengths,
                    None,
                    part,
                    backward=direction == "backward",
                    threads=torch.get_num_threads() // workers,
                )
                for direction, part in parts.items()
            ]
            for run in runs:
                run.result()
        return states

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
        if direction not in self._prepared:
            if lengths is not None:
                lengths = lengths.to(self.device)
            with torch.inference_mode(), self._autocast():
                output = self._encoder.direction(direction)(vectors.to(self.device), state, lengths=lengths)
            return EncoderOutput([layer.float() for layer in output.layer_states], output.state)
        sizes = self._encoder.config.sizes
        batch, time = vectors.shape[:2]
        states = torch.zeros(batch, sizes.layers + 1, time, sizes.projection_size)
        if lengths is None:
            lengths = torch.full((batch,), time)
        inputs = self._input_states(direction, vectors, states)
        after = self._run_prepared(
            direction, inputs, lengths, state, states, backward=False, threads=torch.get_num_threads()
        )
        return EncoderOutput(list(states.unbind(1)), after)

    def _input_states(self, direction: str, vectors: Tensor, states: Tensor) -> Tensor:
        """What the encoder of a direction reads [B, T, P], put into layer 0 of its states [B, L + 1, T, P]."""
        with torch.inference_mode():
            inputs: Tensor = self._encoder.direction(direction).input_layer(vectors)
        states[:, 0] = inputs
        return inputs

    @torch.inference_mode()
    def _run_prepared(
        self,
        direction: str,
        inputs: Tensor,
        lengths: Tensor,
        state: EncoderState | None,
        states: Tensor,
        *,
        backward: bool,
        threads: int,
    ) -> EncoderState:
        return self._prepared[direction](inputs, lengths, state, states, backward=backward, threads=threads)

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32)
