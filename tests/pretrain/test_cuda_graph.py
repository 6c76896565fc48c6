"""CUDA graphs: an update by them is an update (nothing is recorded on the CPU here; test_gpu.py trains by them)."""

from contextlib import closing

import pytest
import torch

from elmoc.encoders.bidirectional import DirectionEncoder
from pretrain.cuda_graph import GraphedEncoder, graphed
from pretrain.describe import first_batches
from pretrain.setup import TrainingSetup
from pretrain.step import DirectionStep, TrainStep
from tests.pretrain.conftest import TinyRuns


def three_updates(setup: TrainingSetup) -> list[dict[str, DirectionStep]]:
    with closing(TrainStep(setup, setup.new_state())) as train_step:
        return [train_step(batch, 0.01) for batch in first_batches(setup, 3)]


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("carry_state", [True, False])
def test_an_update_by_graphs_is_an_update(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, carry_state: bool, dropout: float
) -> None:
    settings = {"train__carry_state": carry_state, "encoder__dropout": dropout}
    expected = three_updates(runs.setup(**settings))

    def as_on_a_gpu(encoder: DirectionEncoder, setup: TrainingSetup) -> GraphedEncoder:
        assert graphed(encoder, setup) is encoder
        return GraphedEncoder(encoder, setup.execution, torch.zeros(4, 5, 8))

    monkeypatch.setattr("torch.cuda.make_graphed_callables", lambda module, _: module)
    monkeypatch.setattr("pretrain.step.graphed", as_on_a_gpu)
    assert three_updates(runs.setup(**settings)) == expected
