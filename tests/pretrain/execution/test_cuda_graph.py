"""CUDA graphs: an update recorded once and repeated is the same (recorded on the CPU here; see `test_gpu.py`)."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pretrain.data.sources import TrainingData
from pretrain.execution.cuda_graph import CudaGraphStep
from pretrain.run.directory import read_metrics
from pretrain.setup import TrainingSetup
from pretrain.step import StepResult, TrainStep
from pretrain.train_state import TrainState
from tests.pretrain.conftest import TinyRuns, assert_same, last_checkpoint


def tensors_of(outcome: StepResult) -> list[torch.Tensor]:
    return [outcome.loss, outcome.gradient_norm, outcome.masked, *sum(outcome.state.layers, ())]


def recorder(state: TrainState) -> Callable[[Callable[[], StepResult]], tuple[Callable[[], None], StepResult]]:
    """What a CUDA graph is to a GPU: recording computes nothing, repeating reads and writes where recording did."""

    def record(function: Callable[[], StepResult]) -> tuple[Callable[[], None], StepResult]:
        before = copy.deepcopy([state.encoder.state_dict(), state.output_layers.state_dict()])
        moments = {name: copy.deepcopy(optimiser.state_dict()) for name, optimiser in state.optimisers.items()}
        outcome = function()
        for module, values in zip((state.encoder, state.output_layers), before, strict=True):
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


CONTRASTIVE = {"kind": "contrastive"}


@pytest.mark.parametrize(
    ("carry", "dropout", "output_layer"),
    [(False, 0.0, {}), (True, 0.3, CONTRASTIVE)],
)
def test_a_recorded_run_is_the_run(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, carry: bool, dropout: float, output_layer: dict[str, Any]
) -> None:
    settings: dict[str, Any] = {"train__carry_state": carry, "encoder__dropout": dropout, "train__threads": 1}
    settings |= {f"output_layer__{name}": value for name, value in output_layer.items()}
    # as `train.cuda_graph` has it, for which a GPU is needed
    monkeypatch.setattr("pretrain.setup.TrainingData", lambda **each: TrainingData(**each | {"fixed_sizes": True}))
    plain = runs.run("plain", **settings)
    recorded: dict[str, CudaGraphStep] = {}

    def recorded_step(setup: TrainingSetup, state: TrainState) -> TrainStep:
        train_step = TrainStep(setup, state)
        for direction, function in train_step.compute.items():
            recorded[direction] = CudaGraphStep(function, recorder(state))
        train_step.compute = dict(recorded)
        return train_step

    monkeypatch.setattr("pretrain.train.TrainStep", recorded_step)
    repeated = runs.run("repeated", **settings)
    assert len(recorded) == 2
    for key in ("encoder", "heads", "recurrent", "generators"):
        assert_same(last_checkpoint(plain)[key], last_checkpoint(repeated)[key], key)
    assert read_metrics(plain.path, "evaluation") == read_metrics(repeated.path, "evaluation")
