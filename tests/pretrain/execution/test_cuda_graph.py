"""Is an update the same when it is recorded once and repeated? The recorder here runs on the CPU; see `test_gpu.py`."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from elmoc.encoders.recurrence import LSTMState
from pretrain import step
from pretrain.execution.cuda_graph import WARM_UP, CudaGraphStep, StepInputs
from pretrain.run.directory import read_metrics
from pretrain.step import StepResult
from pretrain.train_state import TrainState
from tests.pretrain.conftest import TinyRuns, assert_same, last_checkpoint


def tensors_of(outcome: StepResult) -> list[torch.Tensor]:
    return [outcome.loss, outcome.gradient_norm, outcome.masked, *(part for layer in outcome.state for part in layer)]


def recorder(state: TrainState) -> Callable[[Callable[[], StepResult]], tuple[Callable[[], None], StepResult]]:
    """What a CUDA graph is to a GPU: recording computes nothing, repeating reads and writes where recording did."""

    def record(function: Callable[[], StepResult]) -> tuple[Callable[[], None], StepResult]:
        before = copy.deepcopy([state.encoder.state_dict(), state.heads.state_dict()])
        moments = {name: copy.deepcopy(optimiser.state_dict()) for name, optimiser in state.optimisers.items()}
        outcome = function()
        for module, values in zip((state.encoder, state.heads), before, strict=True):
            module.load_state_dict(values)
        for name, optimiser in state.optimisers.items():
            optimiser.load_state_dict(moments[name])
        for tensor in tensors_of(outcome):
            tensor.fill_(torch.iinfo(tensor.dtype).max if tensor.dtype == torch.int64 else float("nan"))

        def again() -> None:
            for place, value in zip(tensors_of(outcome), tensors_of(function()), strict=True):
                place.copy_(value)

        return again, outcome

    return record


@pytest.mark.parametrize("carry", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_recorded_run_is_the_run(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, carry: bool, dropout: float
) -> None:
    settings: dict[str, Any] = {"train__carry_state": carry, "encoder__dropout": dropout, "train__threads": 1}
    plain = runs.run("plain", **settings)
    recorded: dict[str, CudaGraphStep] = {}

    def recorded_step(setup: Any, state: TrainState, batch: Any, rate: float, runner: Any, _: None) -> Any:
        for direction in setup.processes.directions:
            function = partial(step.compute, setup, state, direction)
            recorded.setdefault(direction, CudaGraphStep(function, recorder(state)))
        return step.train_step(setup, state, batch, rate, runner, recorded)

    monkeypatch.setattr("pretrain.train.train_step", recorded_step)
    repeated = runs.run("repeated", **settings)
    assert len(recorded) == 2
    for key in ("encoder", "heads", "recurrent", "generators"):
        assert_same(last_checkpoint(plain)[key], last_checkpoint(repeated)[key], key)
    assert read_metrics(plain.path, "evaluation") == read_metrics(repeated.path, "evaluation")


def test_it_is_recorded_once_and_given_copies() -> None:
    calls: list[float] = []

    def function(inputs: StepInputs) -> torch.Tensor:
        calls.append(given.vectors.item())
        return given.vectors + given.state[0].cell

    records = []

    def record(run: Callable[[], torch.Tensor]) -> tuple[Callable[[], None], torch.Tensor]:
        records.append(run)
        result = run()
        return lambda: result.copy_(run()), result

    repeated = CudaGraphStep(function, record)
    for number in range(WARM_UP + 3):
        value = torch.tensor(float(number))
        given = StepInputs(value, value, [None, value], [LSTMState(value, value)])
        assert repeated(given).item() == 2 * number
        value.fill_(-1.0)  # what was given may be overwritten
    assert len(records) == 1


def test_it_is_refused_without_a_gpu(runs: TinyRuns, error_line: Callable[[int], str]) -> None:
    assert "train.cuda_graph is for one process on a GPU" in error_line(runs.status("run", train__cuda_graph=True))
