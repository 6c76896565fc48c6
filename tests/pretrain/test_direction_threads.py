"""Direction threads: two directions side by side give what they give in turn."""

import threading
from contextlib import closing

import pytest
import torch
from pretrain.describe import first_batches
from pretrain.step import TrainStep
from tests.pretrain.conftest import TinyRuns


def test_two_directions_run_in_two_threads_at_once_and_an_error_is_raised(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(2)
    together, threads = threading.Barrier(2, timeout=200), set()  # it breaks unless both are running

    def work(step: TrainStep, direction: str, **_: object) -> torch.Tensor:
        together.wait()
        threads.add((threading.get_ident(), torch.get_num_threads()))
        if direction == "backward":
            raise ValueError("backward failed")
        return torch.zeros(3)

    monkeypatch.setattr(TrainStep, "update_direction", work)
    setup = runs.setup()
    with closing(TrainStep(setup, setup.new_state())) as train_step, pytest.raises(ValueError, match="backward failed"):
        train_step(*first_batches(setup, 1), 0.0)
    assert len(threads) == 2
    assert {count for _, count in threads} == {1}


@pytest.mark.parametrize("side_by_side", [False, True])
def test_a_gpu_is_waited_for_once_an_update(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, side_by_side: bool
) -> None:
    torch.set_num_threads(2)
    setup = runs.setup()
    (batch,) = first_batches(setup, 1)
    fetched: list[list[int]] = []

    def fetch(tensor: torch.Tensor) -> list[list[float]]:
        fetched.append(list(tensor.shape))
        return tensor.numpy().tolist()

    with closing(TrainStep(setup, setup.new_state(), side_by_side=side_by_side)) as train_step:
        monkeypatch.setattr(torch.Tensor, "tolist", fetch)
        monkeypatch.setattr(torch.Tensor, "item", fetch)
        steps = train_step(batch, 0.0)
    assert fetched == [[2, 3]]
    assert steps["forward"].loss != steps["backward"].loss
