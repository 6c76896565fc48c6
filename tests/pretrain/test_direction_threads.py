"""Direction threads: two directions side by side give what they give in turn."""

import threading
from contextlib import closing

import pytest
import torch

from pretrain.config import load_config
from pretrain.describe import first_batches
from pretrain.setup import set_up
from pretrain.step import DirectionThreads
from pretrain.train import new_train_step
from tests.pretrain.conftest import TinyRuns


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_two_directions_run_in_two_threads_at_once(two_threads: None) -> None:
    runner = DirectionThreads(("forward", "backward"), torch.device("cpu"))
    together = threading.Barrier(2, timeout=20)  # breaks unless both are running

    def work(direction: str) -> tuple[str, int, int]:
        together.wait()
        return direction, threading.get_ident(), torch.get_num_threads()

    results = runner.map(work)
    runner.close()
    assert [results[direction][0] for direction in ("forward", "backward")] == ["forward", "backward"]
    assert results["forward"][1] != results["backward"][1]
    assert {result[2] for result in results.values()} == {1}


def test_one_direction_runs_in_the_caller() -> None:
    runner = DirectionThreads(("backward",), torch.device("cpu"))
    assert runner.map(lambda _: threading.get_ident()) == {"backward": threading.get_ident()}
    runner.close()


def test_an_exception_of_one_direction_is_raised(two_threads: None) -> None:
    runner = DirectionThreads(("forward", "backward"), torch.device("cpu"))

    def fail(direction: str) -> None:
        if direction == "backward":
            raise ValueError("backward failed")

    with pytest.raises(ValueError, match="backward failed"):
        runner.map(fail)
    runner.close()


@pytest.mark.parametrize("side_by_side", [False, True])
def test_a_gpu_is_waited_for_once_an_update(
    runs: TinyRuns, two_threads: None, monkeypatch: pytest.MonkeyPatch, side_by_side: bool
) -> None:
    overrides = [argument.removeprefix("--set=") for argument in runs.arguments("run")[2:]]
    setup = set_up(load_config(runs.config, overrides))
    (batch,) = first_batches(setup, 1)
    fetched: list[list[int]] = []

    def fetch(tensor: torch.Tensor) -> list[list[float]]:
        fetched.append(list(tensor.shape))
        return tensor.numpy().tolist()

    with closing(new_train_step(setup, setup.new_state(), side_by_side=side_by_side)) as train_step:
        monkeypatch.setattr(torch.Tensor, "tolist", fetch)
        monkeypatch.setattr(torch.Tensor, "item", fetch)
        steps = train_step(batch, 0.0)
    assert fetched == [[2, 3]]
    assert steps["forward"].loss != steps["backward"].loss
