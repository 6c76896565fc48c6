"""The scalar mix equals that of allennlp_light, values and gradients."""

import pytest
import torch
from allennlp_light.modules.scalar_mix import ScalarMix as Theirs
from elmoc.errors import InputError

from elmoc.modules import ScalarMix

WEIGHTS = [0.3, -1.2, 0.8]


@pytest.mark.parametrize("layer_norm", [False, True])
def test_it_equals_that_of_allennlp(layer_norm: bool) -> None:
    torch.manual_seed(0)
    states = torch.randn(2, 3, 5, 4, dtype=torch.float64)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    ours = ScalarMix(3, weights=WEIGHTS, layer_norm=layer_norm).double()
    theirs = Theirs(3, do_layer_norm=layer_norm, initial_scalar_parameters=WEIGHTS).double()
    grad = torch.randn(2, 5, 4, dtype=torch.float64) * mask.unsqueeze(-1)
    mixed = ours(states, mask)
    torch.testing.assert_close(ours(states), ours(states, torch.ones_like(mask)))
    expected = theirs(list(states.unbind(1)), mask)
    torch.testing.assert_close(mixed[mask], expected[mask])
    mixed.backward(grad)
    expected.backward(grad)
    torch.testing.assert_close(ours.weights.grad, torch.cat([each.grad for each in theirs.scalar_parameters]))
    torch.testing.assert_close(ours.gamma.grad, theirs.gamma.grad)
    many = torch.randn(40, 3, 40, 50)  # more numbers of a layer than float16 can count
    mix = ScalarMix(3, weights=WEIGHTS, layer_norm=layer_norm)
    torch.testing.assert_close(mix.half()(many.half()), mix.float()(many).half(), atol=0.01, rtol=0.01)
    with pytest.raises(InputError, match="3 layers are mixed by 1 weights"):
        ScalarMix(1)(states)
