"""The bidirectional LSTM: padding changes nothing, and comes out as zeros."""

import torch
from downstream.modules.tagging import BiLstm


def test_each_sentence_of_a_batch_is_read_as_if_alone() -> None:
    torch.manual_seed(0)
    encoder = BiLstm(input_size=5, hidden_size=4, layers=3, dropout=0.5).double().eval()
    lengths = torch.tensor([3, 7, 1, 6])
    x = torch.randn(4, 8, 5, dtype=torch.float64)  # longer than the longest sentence, and no zeros
    states = encoder(x, lengths)
    assert states.shape == (4, 8, encoder.output_size)
    for row, length in enumerate(lengths.tolist()):
        alone, _ = encoder.lstm(x[row : row + 1, :length])
        torch.testing.assert_close(states[row, :length], alone[0])
        assert not states[row, length:].any()


def test_dropout_between_layers_while_training_alone() -> None:
    encoder = BiLstm(input_size=3, hidden_size=4, layers=2, dropout=0.5)
    x, lengths = torch.randn(2, 5, 3), torch.tensor([5, 2])
    assert not torch.equal(encoder(x, lengths), encoder(x, lengths))
    encoder.eval()
    assert torch.equal(encoder(x, lengths), encoder(x, lengths))
