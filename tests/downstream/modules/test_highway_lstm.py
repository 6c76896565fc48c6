"""The fast stack of highway LSTMs: that of allennlp_light, in outputs and gradients."""

import pytest
import torch
from allennlp_light.modules.stacked_alternating_lstm import StackedAlternatingLstm
from downstream.modules.highway_lstm import AlternatingLstm
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence


def twins(
    *, layers: int, dropout: float, dtype: torch.dtype = torch.float64
) -> tuple[AlternatingLstm, StackedAlternatingLstm]:
    """Both implementations, with the same random weights."""
    torch.manual_seed(3)
    fast = AlternatingLstm(input_size=5, hidden_size=4, layers=layers, dropout=dropout).to(dtype)
    slow = StackedAlternatingLstm(5, 4, layers, recurrent_dropout_probability=dropout).to(dtype)
    for parameter in fast.parameters():
        torch.nn.init.normal_(parameter)
    slow.load_state_dict(
        {name.replace("cells.", "layer_").replace(".", ".cell.", 1): value for name, value in fast.state_dict().items()}
    )
    return fast, slow


def gradients(module: torch.nn.Module, x: Tensor) -> list[Tensor | None]:
    return [x.grad, *(parameter.grad for _, parameter in sorted(module.named_parameters()))]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("lengths", [[6, 4, 4, 1], [3, 3], [1], [7]])
def test_outputs_and_gradients(dtype: torch.dtype, layers: int, dropout: float, lengths: list[int]) -> None:
    fast, slow = twins(layers=layers, dropout=dropout, dtype=dtype)
    x = torch.randn(len(lengths), max(lengths), 5, dtype=dtype)
    weights = torch.randn(sum(lengths), 4, dtype=dtype)
    results = []
    for module in (fast, slow):
        packed = pack_padded_sequence(x.clone().requires_grad_(), torch.tensor(lengths), batch_first=True)
        data = packed.data.detach().requires_grad_()  # [N, 5]
        torch.manual_seed(5)  # for the masks, which both draw alike
        if module is fast:
            output = fast(packed._replace(data=fast.first(data))).data
        else:
            output = slow(packed._replace(data=data))[0].data
        (output * weights).sum().backward()
        results.append([output, *gradients(module, data)])
    for mine, theirs in zip(*results, strict=True):
        if dtype == torch.float64:
            torch.testing.assert_close(mine, theirs)
        else:
            torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)


def test_no_dropout_in_evaluation() -> None:
    fast, slow = twins(layers=2, dropout=0.4)
    fast.eval(), slow.eval()
    packed = pack_padded_sequence(torch.randn(2, 3, 5, dtype=torch.float64), torch.tensor([3, 2]), batch_first=True)
    output = fast(packed._replace(data=fast.first(packed.data))).data
    torch.testing.assert_close(output, slow(packed)[0].data)
