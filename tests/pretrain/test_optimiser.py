"""The optimiser: its updates are those of their formulas."""

import copy
import math
from contextlib import closing
from typing import Any

import numpy as np
import pytest
import torch
from pretrain.data.batches import Batch
from pretrain.describe import first_batches
from pretrain.optimiser import AdamSettings, SgdSettings, clip_gradients, new_adagrad, set_rate
from pretrain.step import TrainStep
from tests.pretrain.conftest import TinyRuns, assert_same
from tests.pretrain.output_layers.test_adaptive import ADAPTIVE
from tests.references import adam_weights

from elmoc.encoders import DIRECTIONS
from pretrain.output_layers import SHARED


def weights() -> list[torch.Tensor]:
    """A bias, a matrix and the weight of a layer norm."""
    random = np.random.default_rng(1)
    return [torch.tensor(random.normal(size=shape), dtype=torch.float32) for shape in ((3,), (3, 4), (4,))]


def step(optimiser: torch.optim.Optimizer, parameters: list[torch.Tensor], gradients: list[np.ndarray]) -> None:
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = torch.tensor(gradient, dtype=torch.float32)
    for group in optimiser.param_groups:
        group["lr"] = 0.1
    optimiser.step()


def test_updates_are_those_of_the_formula() -> None:
    config = AdamSettings(beta1=0.8, beta2=0.9, epsilon=1e-4)
    parameters, random = weights(), np.random.default_rng(2)
    before = [parameter.double().numpy().copy() for parameter in parameters]
    gradients = [[random.normal(size=parameter.shape) for parameter in parameters] for _ in range(5)]
    optimiser = config.new(parameters, torch.device("cpu"))
    for each in gradients:
        step(optimiser, parameters, each)
    for index, parameter in enumerate(parameters):
        expected = adam_weights(
            before[index], [each[index] for each in gradients], rate=0.1, betas=(0.8, 0.9), epsilon=1e-4
        )
        np.testing.assert_allclose(parameter.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_sgd_goes_against_the_gradient() -> None:
    parameters, gradient = weights(), list(map(np.ones, ((3,), (3, 4), (4,))))
    before = [parameter.numpy() - 0.1 for parameter in parameters]
    optimiser = SgdSettings().new(parameters, torch.device("cpu"))
    step(optimiser, parameters, gradient)
    optimiser.found_inf = torch.ones(())  # type: ignore[attr-defined]  # of an update that is left out
    step(optimiser, parameters, gradient)
    for parameter, expected in zip(parameters, before, strict=True):
        np.testing.assert_allclose(parameter.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(("rate_factor", "accumulator"), [(1.0, 0.0), (20.0, 0.5)])
def test_sparse_updates_are_those_of_adagrads_formula(rate_factor: float, accumulator: float) -> None:
    random, rate = np.random.default_rng(3), 0.02
    weight = torch.nn.Parameter(torch.tensor(random.normal(size=(6, 4))))
    optimiser = new_adagrad([weight], rate_factor=rate_factor, accumulator=accumulator)
    expected, squares = weight.detach().numpy().copy(), np.full((6, 4), accumulator)
    for rows in ([0, 3], [3, 5], [0, 1], [3]):
        gradient = random.normal(size=(len(rows), 4))
        weight.grad = torch.sparse_coo_tensor(torch.tensor([rows]), torch.tensor(gradient), (6, 4)).coalesce()
        set_rate(optimiser, rate)
        optimiser.step()
        squares[rows] += gradient**2
        expected[rows] -= rate_factor * rate * gradient / (np.sqrt(squares[rows]) + 1e-10)
        np.testing.assert_allclose(weight.detach().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(("most", "scale"), [(2.0, 0.4), (6.0, 1.0)])
def test_dense_and_sparse_gradients_are_bounded_together(most: float, scale: float) -> None:
    dense, sparse = (torch.nn.Parameter(torch.zeros(4, 2)) for _ in range(2))
    dense.grad = torch.tensor([[3.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    rows = torch.tensor([[0.0, 0.0], [0.0, -4.0]])
    sparse.grad = torch.sparse_coo_tensor(torch.tensor([[1, 3]]), rows, (4, 2)).coalesce()
    assert clip_gradients([dense, sparse], most).item() == 5
    torch.testing.assert_close(dense.grad[0], torch.tensor([3 * scale, 0.0]))
    torch.testing.assert_close(sparse.grad.to_dense()[3], torch.tensor([0.0, -4 * scale]))


def gradients_of_an_update(runs: TinyRuns, **settings: Any) -> tuple[dict[str, float], dict[str, torch.Tensor]]:
    """The norms that the first update of a run tells, and the gradients by which its optimisers update."""
    setup = runs.setup(**settings)
    state, found = setup.new_state(), dict[str, torch.Tensor]()
    for name, optimiser in state.optimisers.items():

        def look(*_: Any, name: str = name) -> None:
            found[name] = torch.cat([each.grad.flatten() for each in state.parameters(name) if each.grad is not None])

        optimiser.register_step_pre_hook(look)
    with closing(TrainStep(setup, state)) as train_step:
        steps = train_step(*first_batches(setup, 1), 0.0)
    return {direction: step.gradient_norm for direction, step in steps.items()}, found


@pytest.mark.parametrize("settings", [{}, ADAPTIVE], ids=["directions", "a shared part"])
def test_the_gradient_of_an_update_is_bounded(runs: TinyRuns, settings: dict[str, Any]) -> None:
    norms, bounded = gradients_of_an_update(runs, optimiser__gradient_norm=1e-3, **settings)
    expected, unbounded = gradients_of_an_update(runs, optimiser__gradient_norm=1e6, **settings)
    assert norms == expected, "before the bound"
    assert set(bounded) == {*DIRECTIONS, *([SHARED] if settings else [])}
    for name, gradient in unbounded.items():
        assert gradient.norm() > 1e-3
        torch.testing.assert_close(bounded[name], gradient * (1e-3 / gradient.norm()), rtol=2e-3, atol=1e-9)
        assert bounded[name].norm() <= 1e-3 * (1 + 1e-5)
    for direction, norm in norms.items():
        assert norm == pytest.approx(unbounded[direction].norm().item(), rel=1e-5)


def test_one_direction_and_what_it_would_share_have_one_bound(runs: TinyRuns) -> None:
    settings = {**ADAPTIVE, "train__directions": ("forward",)}
    norms, bounded = gradients_of_an_update(runs, optimiser__gradient_norm=1e-3, **settings)
    _, unbounded = gradients_of_an_update(runs, optimiser__gradient_norm=1e6, **settings)
    together = torch.cat(list(unbounded.values())).norm().item()
    assert norms == {"forward": pytest.approx(together, rel=1e-5)}
    for name, gradient in unbounded.items():
        torch.testing.assert_close(bounded[name], gradient * (1e-3 / together), rtol=2e-3, atol=1e-9)


def second_update(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, *, damaged: bool, infinite: bool = False, **settings: Any
) -> tuple[dict[str, float], set[str]]:
    """The norms that it tells, and the parts that it changes.

    Args:
        damaged: whether a word that the forward direction reads has a NaN.
        infinite: whether the gradient of the shared part has infinities.
    """
    setup = runs.setup(**settings)
    state = setup.new_state()

    def parts() -> dict[str, Any]:
        now = {name: [state.parameters(name), each.state_dict()] for name, each in state.optimisers.items()}
        return copy.deepcopy(now)

    def read(batch: Batch, direction: str) -> torch.Tensor:
        words = read_as_it_is(batch, direction).clone()
        if direction == "forward":
            words[0, 2, 1] = math.nan
        return words

    read_as_it_is = state.read
    first, second = first_batches(setup, 2)
    with closing(TrainStep(setup, state)) as train_step:
        train_step(first, 0.1)
        before = parts()
        if damaged:
            monkeypatch.setattr(state, "read", read)
        if infinite:
            state.parameters(SHARED)[0].register_hook(lambda gradient: gradient * math.inf)
        steps = train_step(second, 0.1)
    changed = set()
    for name, now in parts().items():
        try:
            assert_same(now, before[name])
        except AssertionError:
            changed.add(name)
    return {direction: step.gradient_norm for direction, step in steps.items()}, changed


def test_an_update_of_one_direction_that_is_not_finite_changes_nothing_of_it(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, changed = second_update(runs, monkeypatch, damaged=False)
    assert changed == {"forward", "backward"}
    norms, changed = second_update(runs, monkeypatch, damaged=True)
    assert math.isnan(norms["forward"])
    assert math.isfinite(norms["backward"])
    assert changed == {"backward"}


def test_an_update_that_is_not_finite_does_not_change_what_is_shared(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, changed = second_update(runs, monkeypatch, damaged=False, **ADAPTIVE)
    assert changed == {"forward", "backward", SHARED}
    _, changed = second_update(runs, monkeypatch, damaged=True, **ADAPTIVE)
    assert changed == {"backward"}
    norms, changed = second_update(runs, monkeypatch, damaged=False, infinite=True, **ADAPTIVE)
    assert not any(map(math.isfinite, norms.values())), "so that the run stops"
    assert SHARED not in changed
