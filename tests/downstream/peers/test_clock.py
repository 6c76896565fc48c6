"""The clock of peers: the learning rate rises and falls, the log grows, and an optimizer stops when time is over."""

import json
import time
from pathlib import Path

import pytest
import torch

from downstream.peers import clock as clocks
from downstream.peers.clock import Clock, TimeIsOver, follow_clock, learning_rate_factor


def test_the_learning_rate_rises_and_falls_in_lines() -> None:
    assert [learning_rate_factor(each, 0.2) for each in (0, 0.1, 0.2, 0.6, 1, 1.5)] == pytest.approx(
        [0, 0.5, 1, 0.5, 0, 0]
    )


def test_an_optimizer_is_led_to_the_end_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    clock = Clock(60, before=20, words=50, log=tmp_path / "log.jsonl", shown=False, names={"direction": "forward"})
    now[0] += 1000  # preparations are not counted
    weight = torch.nn.Parameter(torch.ones(1))
    weight.grad = torch.ones(1)
    optimizer = torch.optim.SGD([weight], lr=9.0)
    losses = iter((1.0, 2.0, 6.0, 4.0, 5.0, 0.5))
    follow_clock(optimizer, clock, peak=0.5, words=lambda: 10, loss=lambda: next(losses))
    rates = []
    for _ in range(5):
        optimizer.step()
        rates.append(optimizer.param_groups[0]["lr"])
        now[0] += 8
    with pytest.raises(TimeIsOver):
        optimizer.step()
    assert rates == pytest.approx([0.5 * learning_rate_factor((20 + 8 * step) / 60) for step in range(5)])
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["seconds"] for line in lines] == [36, 52, 60], "every ten seconds, and at the end"
    assert lines[-1]["words"] == 110
    assert [line["loss"] for line in lines] == [3, 4.5, 0.5], "the mean since the line before"
    assert {line["direction"] for line in lines} == {"forward"}


def test_something_is_due_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(clocks.time, "monotonic", lambda: now[0])
    clock = Clock(100, shown=False)
    clock.start()
    due = []
    for now[0] in range(9):
        due.append(clock.is_due(3))
    assert [index for index, each in enumerate(due) if each] == [3, 6]
