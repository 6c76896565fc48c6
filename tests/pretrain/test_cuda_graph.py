"""CUDA graphs: an update by them is an update (nothing is recorded on the CPU here; test_gpu.py trains by them)."""

from collections.abc import Callable
from contextlib import closing
from itertools import chain
from typing import Any

import pytest
import torch
from elmoc.encoders.bidirectional import DirectionEncoder
from pretrain.cuda_graph import GraphedEncoder, graphed
from pretrain.describe import first_batches
from pretrain.execution import Execution
from pretrain.setup import TrainingSetup
from pretrain.step import DirectionStep, TrainStep
from tests.pretrain.conftest import TinyRuns


def updates(setup: TrainingSetup) -> list[dict[str, DirectionStep]]:
    """Two updates, and one more from zero state."""
    state, done = setup.new_state(), []
    with closing(TrainStep(setup, state)) as train_step:
        for number, batch in enumerate(first_batches(setup, 3)):
            if number == 2:
                state.recurrent = dict.fromkeys(state.recurrent)
            done.append(train_step(batch, 0.01))
    return done


def recorded(module: torch.nn.Module, sample: Any) -> Callable[..., Any]:
    """As PyTorch's graphs do it: what is given is copied to where the sample lies, and computed with from there."""

    def tensors(words: torch.Tensor, layers: Any, masks: Any) -> list[torch.Tensor]:
        return [words, *chain.from_iterable(layers), *masks]

    def run(*given: Any) -> Any:
        for own, new in zip(tensors(*sample), tensors(*given), strict=True):
            own.copy_(new)
        return module(*sample)

    return run


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("carry_state", [True, False])
def test_an_update_by_graphs_is_an_update(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, carry_state: bool, dropout: float
) -> None:
    settings = {"train__carry_state": carry_state, "encoder__dropout": dropout}
    expected = updates(runs.setup(**settings))

    def as_on_a_gpu(encoder: DirectionEncoder, execution: Execution, shape: tuple[int, int, int]) -> GraphedEncoder:
        assert graphed(encoder, execution, shape) is encoder
        assert shape == (4, 5, 8)
        return GraphedEncoder(encoder, execution, torch.zeros(shape))

    monkeypatch.setattr("torch.cuda.make_graphed_callables", recorded)
    monkeypatch.setattr("pretrain.step.graphed", as_on_a_gpu)
    assert updates(runs.setup(**settings)) == expected
