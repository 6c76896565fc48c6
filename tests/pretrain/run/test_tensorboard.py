"""TensorBoard: a run's events are its metrics, also behind a resume."""

import math

import pytest
from pretrain.run.directory import read_metrics
from tests.pretrain.conftest import TinyRuns

events = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator", reason="the extra tensorboard is not installed"
)


def test_events_are_the_metrics_and_those_behind_a_checkpoint_are_written_again(runs: TinyRuns) -> None:
    settings = {"train__updates": 6, "log__every_updates": 1, "log__tensorboard": True}
    run = runs.run("run", log__checkpoint_updates=1, log__keep=100, **settings)
    for path in run.checkpoint_paths():
        if int(path.stem) > 3:
            path.unlink()
    runs.run("run", "--resume", **settings)
    board = events.EventAccumulator(str(run.board)).Reload()
    compared = 0
    for kind in ("train", "evaluation"):
        lines = read_metrics(run.path, kind)
        for name in lines[-1].keys() - {"kind", "update", "words"}:
            found = {event.step: event.value for event in board.Scalars(f"{kind}/{name}")}
            assert list(found) == [line["update"] for line in lines if line["update"] in found]
            assert found.keys() == {line["update"] for line in lines}
            for line in lines:
                value = math.nan if line[name] is None else line[name]
                assert found[line["update"]] == pytest.approx(value, rel=1e-5, nan_ok=True), name
                compared += 1
    assert compared > 20
