"""The bidirectional LSTM over padded sentences: that over packed ones, in outputs and gradients."""

import pytest
import torch
from downstream.modules.tagging import padded_bilstm
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layers", [1, 3])
def test_equal_to_packed_sentences(dtype: torch.dtype, layers: int) -> None:
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(5, 4, num_layers=layers, dropout=0.5, bidirectional=True, batch_first=True).to(dtype).eval()
    lengths = torch.tensor([3, 7, 1, 6])
    x = torch.randn(4, 8, 5, dtype=dtype, requires_grad=True)  # longer than the longest sentence, and no zeros
    direction = torch.randn(4, 8, 8, dtype=dtype)
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    plain, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=8)
    states = padded_bilstm(lstm, x, lengths)
    leaves = [x, *lstm.parameters()]
    gradients = [torch.autograd.grad((out * direction).sum(), leaves) for out in (states, plain)]
    torch.testing.assert_close(states, plain)
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4 if dtype == torch.float32 else 1e-9, atol=1e-5)


def test_dropout_between_layers_while_training_alone() -> None:
    lstm = torch.nn.LSTM(3, 4, num_layers=2, dropout=0.5, bidirectional=True, batch_first=True)
    x, lengths = torch.randn(2, 5, 3), torch.tensor([5, 2])
    assert not torch.equal(padded_bilstm(lstm, x, lengths), padded_bilstm(lstm, x, lengths))
    lstm.eval()
    assert torch.equal(padded_bilstm(lstm, x, lengths), padded_bilstm(lstm, x, lengths))
