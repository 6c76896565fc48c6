"""Training: it stops in time, keeps the best weights, and reads every example once an epoch."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from downstream.probe.splits import Split
from downstream.probe.task import Probe
from downstream.probe.training import evaluate, length_batches, train_probe
from downstream.settings import TrainingSettings
from elmoc.errors import InputError
from torch import Tensor


class CountingProbe(Probe[float, float]):
    """Its one weight counts updates (the gradient is −1, the optimiser's step about 1 with a rate of 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.penalty = 0.0
        self.mixed = False

    @property
    def inputs(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(
            mix_penalty=lambda: self.penalty * self.weight, mix_parameters=lambda: [self.weight] * self.mixed
        )

    def loss(self, examples: Sequence[float]) -> Tensor:
        assert self.training
        return -self.weight * min(examples)

    def predict(self, examples: Sequence[float]) -> list[float]:
        assert not self.training
        return [10 * example for example in examples]


def split_of(examples: Sequence[float], lengths: list[int]) -> Split:
    return Split("dev", list(examples), [], lengths, {}, [], {})


def scored_in_turn(scores: Sequence[float]) -> Any:
    """A task of which the metric has these values, one after the other."""
    remaining = iter(scores)
    return SimpleNamespace(
        metric="score", unit="examples", count=lambda *_: np.zeros(1), metrics=lambda _: {"score": next(remaining)}
    )


def train(
    probe: CountingProbe, scores: list[float], *, patience: int, examples: Sequence[float] = (1.0,), **settings: Any
) -> dict[str, Any]:
    return train_probe(
        scored_in_turn(scores),
        probe,
        train=split_of(examples, [1] * len(examples)),
        dev=split_of([1.0], [1]),
        settings=TrainingSettings(
            **{"learning_rate": 1.0, "batch_size": 1, "epochs": len(scores), "patience": patience} | settings
        ),
        generator=np.random.default_rng(0),
        title="test",
    )


@pytest.mark.parametrize(
    ("scores", "patience", "best", "epochs"),
    [
        ([1, 2, 3, 4], 2, 4, 4),
        ([1, 5, 3, 4, 4, 9], 2, 2, 4),
        ([1, 5, 3, 4, 4, 9], 4, 6, 6),
        ([0, 0, 0], 9, 1, 3),
        ([3, 1, 3, 9], 3, 4, 4),
    ],
)
def test_patience_and_best_weights(scores: list[float], patience: int, best: int, epochs: int) -> None:
    probe = CountingProbe()
    report = train(probe, scores, patience=patience)
    assert [report[name] for name in ("best_epochs", "epochs", "dev_scores")] == [[best], [epochs], [scores[best - 1]]]
    assert [epoch["dev_score"] for epoch in report["curves"][0]] == scores[:epochs]
    assert probe.weight.item() == pytest.approx(best), "one update an epoch: the weight is that of the best epoch"


def test_a_loss_that_is_no_number_stops() -> None:
    with pytest.raises(InputError, match="nan"):
        train(CountingProbe(), [1, 2], patience=2, examples=[float("nan")])


@pytest.mark.parametrize(
    ("settings", "clipped"), [({}, -1000.0), ({"gradient_norm": 10.0}, -10.0), ({"gradient_value": 2.0}, -2.0)]
)
def test_gradients_are_clipped(settings: dict[str, float], clipped: float) -> None:
    original = torch.optim.Adam.step
    seen = []
    with pytest.MonkeyPatch.context() as patch:

        def step(self: torch.optim.Adam) -> None:
            seen.append(self.param_groups[0]["params"][0].grad.item())
            original(self)

        patch.setattr(torch.optim.Adam, "step", step)
        train(CountingProbe(), [1], patience=1, examples=[1000.0], **settings)
    assert seen == [pytest.approx(clipped)]


def test_the_scalar_mix_is_penalised() -> None:
    probe = CountingProbe()
    probe.penalty = 1.0
    with torch.no_grad():
        probe.weight.fill_(3.0)
    report = train(probe, [1], patience=1, mix_l2=0.1)
    assert report["curves"][0][0]["loss"] == pytest.approx(-3 + 0.1 * 3)


@pytest.mark.parametrize(
    ("settings", "updates"),
    [
        ({}, [1.0] * 5),
        ({"halve_on_plateau": True}, [1.0, 1.0, 1.0, 0.5, 0.25]),  # the scores after each epoch: 1, 3, 2, 2, 2
    ],
)
def test_the_learning_rate_is_halved_on_a_plateau(settings: dict[str, bool], updates: list[float]) -> None:
    probe = CountingProbe()
    weights = [0.0]
    original = probe.loss
    probe.loss = lambda examples: (weights.append(probe.weight.item()), original(examples))[1]  # type: ignore[method-assign]
    train(probe, [1, 3, 2, 2, 2, 2], patience=9, **settings)
    assert np.diff(weights[1:]) == pytest.approx(updates)


def test_the_learning_rate_decays_every_hundred_updates() -> None:
    probe = CountingProbe()
    train(probe, [1], patience=1, examples=[1.0] * 201, decay=0.5)
    assert probe.weight.item() == pytest.approx(100 + 50 + 0.25, rel=1e-5)


@pytest.mark.parametrize("optimiser", ["adam", "adadelta"])
def test_the_mix_learns_at_a_rate_of_its_own(optimiser: str) -> None:
    def weight(*, mixed: bool, **settings: Any) -> float:
        probe = CountingProbe()
        probe.mixed = mixed
        train(probe, [1], patience=1, examples=[1.0] * 150, optimiser=optimiser, decay=0.5, **settings)
        return probe.weight.item()

    assert weight(mixed=True, mix_rate=10.0) == pytest.approx(10 * weight(mixed=False, mix_rate=10.0))
    assert weight(mixed=True) == weight(mixed=False) == weight(mixed=False, mix_rate=10.0)


def test_predictions_come_in_the_order_of_the_examples() -> None:
    examples = [5.0, 3.0, 8.0, 1.0, 9.0, 2.0, 7.0]
    split = split_of(examples, [int(example) for example in examples])
    assert evaluate(scored_in_turn([0]), CountingProbe(), split, 2)[0] == [10 * each for each in examples]


def test_batches_hold_every_row_once_and_rows_of_like_length() -> None:
    lengths = np.random.default_rng(1).integers(1, 100, size=1003).tolist()

    def epoch(seed: int) -> list[list[int]]:
        return [batch.tolist() for batch in length_batches(lengths, 8, np.random.default_rng(seed))]

    batches = epoch(0)
    assert sorted(row for batch in batches for row in batch) == list(range(1003))
    assert {len(batch) for batch in batches} == {8, 1003 % 8}
    spread = np.mean([max(lengths[row] for row in batch) - min(lengths[row] for row in batch) for batch in batches])
    assert spread < 15, "random batches of eight would spread over 78 on average"
    assert batches == epoch(0) != epoch(1)
