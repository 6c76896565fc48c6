"""LSTMs: padding changes nothing; highway LSTMs are those of the papers and of allennlp_light."""

import pytest
import torch
from allennlp_light.modules.stacked_alternating_lstm import StackedAlternatingLstm
from downstream.modules.lstm import AlternatingLstm, CoupledLstm, HighwayBiLstm, padded_bilstm
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layers", [1, 3])
def test_padded_sentences_give_what_packed_ones_give(dtype: torch.dtype, layers: int) -> None:
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(5, 4, num_layers=layers, bidirectional=True, batch_first=True).to(dtype).eval()
    lengths = torch.tensor([3, 7, 1, 6])
    x = torch.randn(4, 8, 5, dtype=dtype, requires_grad=True)
    direction = torch.randn(4, 8, 8, dtype=dtype)
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    plain, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=8)
    states = padded_bilstm(lstm, x, lengths)
    leaves = [x, *lstm.parameters()]
    gradients = [torch.autograd.grad((out * direction).sum(), leaves) for out in (states, plain)]
    torch.testing.assert_close(states, plain)
    torch.testing.assert_close(*gradients, rtol=1e-4 if dtype == torch.float32 else 1e-9, atol=1e-5)


def plain_coupled(lstm: CoupledLstm, x: Tensor, mask: Tensor) -> Tensor:
    """Lee et al.'s cell (2018), word by word and gate by gate: [T, D] → [T, H]."""
    hidden, cell = lstm.start
    states = []
    for word in x:
        read = torch.cat([word, mask * hidden])
        enter, candidate, leave = (lstm.gates.weight @ read + lstm.gates.bias).view(3, -1)
        cell = (1 - enter.sigmoid()) * cell + enter.sigmoid() * candidate.tanh()
        hidden = leave.sigmoid() * cell.tanh()
        states.append(hidden)
    return torch.stack(states)


def test_coupled_cells_are_those_of_the_equations() -> None:
    torch.manual_seed(0)
    lstm = CoupledLstm(3, 4, dropout=0.5).double()
    for gate in lstm.gates.weight.chunk(3):
        torch.testing.assert_close((gate @ gate.T).float(), torch.eye(4))
    x = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(1)
    states = lstm(x)
    torch.manual_seed(1)
    masks = torch.nn.functional.dropout(torch.ones(2, 4, dtype=torch.float64), 0.5)
    plain = torch.stack([plain_coupled(lstm, row, mask) for row, mask in zip(x, masks, strict=True)])
    assert set(masks.unique().tolist()) == {0.0, 2.0}
    leaves = [x, *lstm.parameters()]
    own, theirs = (torch.autograd.grad((each**2).sum(), leaves) for each in (states, plain))
    torch.testing.assert_close((states, own), (plain, theirs))


@pytest.mark.parametrize("coupled", [False, True])
def test_highways(coupled: bool) -> None:
    torch.manual_seed(0)
    encoder = HighwayBiLstm(input_size=3, hidden_size=2, layers=3, dropout=0.0, coupled=coupled)
    lengths = [4, 1, 7, 3]
    sentences = [torch.randn(length, 3) for length in lengths]
    together = encoder(torch.nn.utils.rnn.pad_sequence(sentences, batch_first=True), torch.tensor(lengths))
    for row, sentence in zip(together, sentences, strict=True):
        x = sentence.unsqueeze(0)
        for number, layer in enumerate(encoder.layers):
            if coupled:
                y = torch.cat([layer.forwards(x), layer.backwards(x.flip(1)).flip(1)], dim=2)
            else:
                y = layer.lstm(x)[0]
            if number:
                share = encoder.gates[number - 1](y).sigmoid()
                y = share * y + (1 - share) * x
            x = y
        torch.testing.assert_close(row[: len(sentence)], x[0])


def twins(*, layers: int, dropout: float) -> tuple[AlternatingLstm, StackedAlternatingLstm]:
    """Both implementations, with the same random weights."""
    torch.manual_seed(3)
    fast = AlternatingLstm(input_size=5, hidden_size=4, layers=layers, dropout=dropout).double()
    slow = StackedAlternatingLstm(5, 4, layers, dropout, use_input_projection_bias=False).double()
    for parameter in fast.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    slow.load_state_dict(
        {name.replace("cells.", "layer_").replace(".", ".cell.", 1): value for name, value in fast.state_dict().items()}
    )
    return fast, slow


def gradients(module: torch.nn.Module, x: Tensor) -> list[Tensor | None]:
    return [x.grad, *(parameter.grad for _, parameter in sorted(module.named_parameters()))]


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("lengths", [[6, 4, 4, 1], [3, 3], [1], [7]])
def test_outputs_and_gradients(layers: int, dropout: float, lengths: list[int]) -> None:
    fast, slow = twins(layers=layers, dropout=dropout)
    x = torch.randn(len(lengths), max(lengths), 5, dtype=torch.float64)
    weights = torch.randn(sum(lengths), 4, dtype=torch.float64)
    results = []
    for module in (fast, slow):
        packed = pack_padded_sequence(x.clone().requires_grad_(), torch.tensor(lengths), batch_first=True)
        data = packed.data.detach().requires_grad_()  # [N, 5]
        torch.manual_seed(5)  # for the masks, which both draw alike
        if module is fast:
            output = fast(packed._replace(data=fast.cells[0].input_linearity(data))).data
        else:
            output = slow(packed._replace(data=data))[0].data
        (output * weights).sum().backward()
        results.append([output, *gradients(module, data)])
    torch.testing.assert_close(*results)
