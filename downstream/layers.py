"""Which layers do several probes share?"""

import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from downstream.padded_lstm import padded_bilstm


class BiLstm(torch.nn.Module):
    """PyTorch's bidirectional LSTM over padded sentences of different lengths.

    dropout  on the outputs of every layer but the last
    """

    def __init__(self, *, input_size: int, hidden_size: int, layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(
            input_size,
            hidden_size,
            num_layers=layers,
            dropout=dropout if layers > 1 else 0.0,
            bidirectional=True,
            batch_first=True,
        )
        self.output_size = 2 * hidden_size

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """[B, T, D] and lengths [B] (on the CPU, each at least 1) → [B, T, 2H], zeros after the end of a sentence."""
        if x.is_cpu:
            return padded_bilstm(self.lstm, x, lengths)
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=x.shape[1])
        return states
