"""Continuous output: the loss is the mean cosine distance, and targets without a direction are left out."""

import numpy as np
import pytest
import torch
from pretrain.output_layers.distances import cosine_loss

from pretrain.output_layers import Loss, Targets
from pretrain.output_layers.continuous import ContinuousOutput, ContinuousSettings
from tests import references


def mean(loss: Loss) -> torch.Tensor:
    return loss.total / loss.counted.clamp(min=1)


@pytest.mark.parametrize("zero", [[], [0], [1, 4, 5]], ids=["none masked", "one masked", "three masked"])
def test_loss_and_gradient_are_those_of_a_plain_loop(zero: list[int]) -> None:
    torch.manual_seed(0)
    predictions, targets = torch.randn(2, 3, 7), 3 * torch.randn(2, 3, 7)
    targets.view(6, 7)[zero] = 0
    expected = references.cosine_loss(predictions.view(6, 7).double().numpy(), targets.view(6, 7).double().numpy())
    predictions.requires_grad_()
    loss = cosine_loss(predictions, targets)
    mean(loss).backward()
    assert mean(loss).item() == pytest.approx(expected.loss, abs=1e-6)
    assert (int(loss.counted), int(loss.masked)) == (expected.counted, expected.masked) == (6 - len(zero), len(zero))
    np.testing.assert_allclose(predictions.grad.view(6, 7).numpy(), expected.gradient, atol=1e-6)


def test_by_hand() -> None:
    predictions = torch.tensor([[2.0, 0.0], [3.0, 3.0], [0.0, -5.0], [1.0, 0.0]])
    targets = torch.tensor([[7.0, 0.0], [0.0, 2.0], [0.0, 1.0], [0.0, 0.0]])
    loss = cosine_loss(predictions, targets)
    assert mean(loss).item() == pytest.approx((0 + (1 - 0.5**0.5) + 2) / 3)
    assert (int(loss.counted), int(loss.masked)) == (3, 1)


def test_lengths_do_not_matter() -> None:
    torch.manual_seed(1)
    predictions, targets = torch.randn(5, 4), torch.randn(5, 4)
    lengths = torch.tensor([[0.01], [1.0], [20.0], [300.0], [5.0]])
    torch.testing.assert_close(
        mean(cosine_loss(predictions * lengths, targets / lengths)), mean(cosine_loss(predictions, targets))
    )


def test_a_batch_without_directions_gives_no_loss_and_no_gradient() -> None:
    predictions = torch.randn(3, 4, requires_grad=True)
    loss = cosine_loss(predictions, torch.zeros(3, 4))
    mean(loss).backward()
    assert (mean(loss).item(), int(loss.counted), int(loss.masked)) == (0, 0, 3)
    assert not predictions.grad.any()


@pytest.mark.parametrize("target", [0.0, 1.0])
def test_a_prediction_of_zero_has_a_finite_gradient(target: float) -> None:
    predictions = torch.zeros(2, 4, requires_grad=True)
    loss = mean(cosine_loss(predictions, torch.full((2, 4), target)))
    loss.backward()
    assert loss.isfinite()
    assert predictions.grad.isfinite().all()


def test_predictions_in_bf16_are_compared_in_float32() -> None:
    predictions, targets = torch.randn(4, 300).bfloat16(), torch.randn(4, 300)
    loss = mean(cosine_loss(predictions, targets))
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, mean(cosine_loss(predictions.float(), targets)))


def test_a_second_layer_adds_the_loss_of_the_word_after_the_next_one() -> None:
    torch.manual_seed(2)
    layer = ContinuousOutput(5, 4, ContinuousSettings(ahead_weight=0.3))
    torch.manual_seed(2)
    alone = ContinuousOutput(5, 4, ContinuousSettings())
    assert torch.equal(layer.weight, alone.weight), "the first layer begins as it does without a second one"
    assert layer.ahead is not None
    assert not torch.equal(layer.ahead.weight, layer.weight)
    states, near, after = torch.randn(2, 3, 5), torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    near[0, 1] = after[1, 2] = 0
    ids = torch.zeros(2, 3, dtype=torch.int64)
    loss = layer(states, Targets(ids, near, after=Targets(ids, after)))
    rows = states.view(6, 5).double().numpy()
    expected = 0.0
    for each, targets, weight in ((layer, near, 1.0), (layer.ahead, after, 0.3)):
        predictions = rows @ each.weight.detach().double().numpy().T + each.bias.detach().double().numpy()
        expected += 5 * weight * references.cosine_loss(predictions, targets.view(6, 4).double().numpy()).loss
    assert loss.total.item() == pytest.approx(expected, abs=1e-5)
    assert (int(loss.counted), int(loss.masked)) == (5, 1)
    assert torch.equal(layer.predict(states), alone.predict(states))
    loss.total.backward()
    assert layer.ahead.weight.grad.any()
