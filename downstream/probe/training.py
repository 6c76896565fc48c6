"""Training of a probe: batches, optimiser, patience on the development split, best
weights, and scores.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from downstream.probe.checkpoint import ProbeCheckpoint
from downstream.probe.splits import Split
from downstream.probe.task import Probe, Task
from downstream.settings import TrainingSettings
from elmoc.errors import InputError, reading
from elmoc.process import progress_bar

# Batches are made of examples of like length within random chunks of this number of
# batches: padding stays small, and an epoch still mixes the data.
CHUNK = 20
# `decay` multiplies the learning rate once in this number of updates (Lee et al. 2018).
DECAY_UPDATES = 100
OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adadelta": partial(torch.optim.Adadelta, rho=0.95),
}


def evaluate(
    task: Task[Any, Any], probe: Probe[Any, Any], split: Split, batch_size: int
) -> tuple[list[Any], np.ndarray, dict[str, float]]:
    """Predict all examples of a split, without dropout, in batches of like length, and
    score them.

    Returns:
        The predictions, the counts of each example, float64 [N, K], and the metrics in
        percent by name.
    """
    probe.eval()
    order = np.argsort(split.lengths, kind="stable")
    by_length: list[Any] = []
    with torch.inference_mode():
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            by_length += probe.predict([split.examples[row] for row in rows])
    # The inverse of `order` brings them back to the order of the examples.
    predictions = [by_length[place] for place in np.argsort(order)]
    pairs = zip(split.examples, predictions, strict=True)
    counts = np.array([task.count(example, found) for example, found in pairs])
    metrics = task.metrics(counts.sum(axis=0))
    return predictions, counts, {name: float(each) for name, each in metrics.items()}


def train_probe(
    task: Task[Any, Any],
    probe: Probe[Any, Any],
    *,
    train: Split,
    dev: Split,
    settings: TrainingSettings,
    generator: np.random.Generator,
    title: str,
    checkpoint: ProbeCheckpoint | None = None,
) -> dict[str, Any]:
    """Train `probe` and leave it with the weights of the epoch that is best by the
    task's metric on `dev`.

    Args:
        task: of the probe.
        probe: with random weights.
        train: the split to train on.
        dev: the split that chooses the epoch.
        settings: hyper-parameters.
        generator: orders the batches; all else is drawn from torch's global generator.
        title: text before the progress bar.
        checkpoint: is written after each epoch but the last, and where it is there,
            the training goes on from it.

    Returns:
        The fields of a line of results that are about training (`dev_scores` and those
        after it), each a list of one element.

    Raises:
        InputError: a loss that is not a finite number.
    """
    count = len(train.examples)
    optimiser = _Optimiser(probe, settings)
    history = _resume(checkpoint, probe, optimiser, generator)
    with progress_bar(
        total=settings.epochs * count,
        initial=len(history.epochs) * count,
        desc=title,
        unit=f" {task.unit}",
        unit_scale=True,
    ) as progress:
        for epoch in range(len(history.epochs) + 1, settings.epochs + 1):
            begin = time.perf_counter()
            probe.train()
            losses = []
            for batch in length_batches(train.lengths, settings.batch_size, generator):
                losses.append(optimiser.update([train.examples[row] for row in batch]))
                progress.update(len(batch))
            seconds = time.perf_counter() - begin
            _, _, metrics = evaluate(task, probe, dev, settings.batch_size)
            score = metrics[task.metric]
            loss = sum(losses) / len(losses)
            history.seconds += time.perf_counter() - begin
            history.add({"loss": loss, "dev_score": score, "seconds": seconds}, probe)
            if settings.halve_on_plateau:
                optimiser.plateau.step(score)
            progress.set_postfix_str(
                f"epoch {epoch}, dev {score:.2f}, best {history.best_score:.2f} in "
                f"epoch {history.best_epoch}",
                refresh=False,
            )
            if epoch - history.best_epoch >= settings.patience:
                break
            if checkpoint is not None and epoch < settings.epochs:
                checkpoint.write(
                    probe=probe.state_dict(),
                    optimiser=optimiser.state_dict(),
                    order=generator.bit_generator.state,
                    history=vars(history),
                )
    probe.load_state_dict(history.best_weights)
    return history.as_results(count)


@dataclass
class _History:
    """What a training has done.

    epochs: loss, score of the development split and seconds of each.
    best_weights: of the best epoch.
    seconds: evaluations included.
    """

    epochs: list[dict[str, float]] = field(default_factory=list)
    best_weights: dict[str, torch.Tensor] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def best_score(self) -> float:
        """Of the development split."""
        return max(each["dev_score"] for each in self.epochs)

    @property
    def best_epoch(self) -> int:
        """The first of equal ones: it has fitted the training data least."""
        scores = [each["dev_score"] for each in self.epochs]
        return 1 + scores.index(self.best_score)

    def add(self, epoch: dict[str, float], probe: Probe[Any, Any]) -> None:
        """An epoch has ended, which left the probe as it is."""
        self.epochs.append(epoch)
        if self.best_epoch == len(self.epochs):
            weights = probe.state_dict().items()
            self.best_weights = {name: weight.clone() for name, weight in weights}

    def as_results(self, examples: int) -> dict[str, Any]:
        """The fields of a line of results, from the examples of an epoch."""
        training_seconds = sum(each["seconds"] for each in self.epochs)
        return {
            "dev_scores": [self.best_score],
            "best_epochs": [self.best_epoch],
            "epochs": [len(self.epochs)],
            "curves": [self.epochs],
            "seconds": [self.seconds],
            "examples_per_second": [len(self.epochs) * examples / training_seconds],
        }


def _resume(
    checkpoint: ProbeCheckpoint | None,
    probe: Probe[Any, Any],
    optimiser: "_Optimiser",
    generator: np.random.Generator,
) -> _History:
    """What the training has done before; the others are put where it stopped."""
    state = None if checkpoint is None else checkpoint.read()
    if checkpoint is None or state is None:
        return _History()
    with reading(checkpoint.path):
        probe.load_state_dict(state["probe"])
        optimiser.load_state_dict(state["optimiser"])
        generator.bit_generator.state = state["order"]
        return _History(**state["history"])


class _Optimiser:
    """Updates of a probe's weights, with clipped gradients and the schedules of the
    learning rate.
    """

    def __init__(self, probe: Probe[Any, Any], settings: TrainingSettings) -> None:
        self._probe = probe
        self._settings = settings
        self._parameters = [each for each in probe.parameters() if each.requires_grad]
        # The mix of the layers has a learning rate of its own.
        mix = probe.inputs.mix_parameters()
        of_mix = set(mix)
        others = [each for each in self._parameters if each not in of_mix]
        rate = settings.learning_rate
        groups = [
            {"params": others, "lr": rate},
            {"params": mix, "lr": settings.mix_rate * rate},
        ]
        self._optimiser = OPTIMISERS[settings.optimiser](groups)
        self._decay = torch.optim.lr_scheduler.StepLR(
            self._optimiser, step_size=DECAY_UPDATES, gamma=settings.decay
        )
        self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
            self._optimiser, mode="max", factor=0.5, patience=0, threshold=0
        )
        self._parts: dict[str, Any] = {
            "optimiser": self._optimiser,
            "decay": self._decay,
            "plateau": self.plateau,
        }

    def state_dict(self) -> dict[str, Any]:
        """What the next update depends on, but for the weights."""
        return {name: each.state_dict() for name, each in self._parts.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        for name, each in self._parts.items():
            each.load_state_dict(state[name])

    def update(self, examples: Sequence[Any]) -> float:
        """Update the weights on a batch, and return its loss.

        Raises:
            InputError: the loss is not a finite number.
        """
        settings = self._settings
        self._optimiser.zero_grad(set_to_none=True)
        penalty = settings.mix_l2 * self._probe.inputs.mix_penalty()
        loss = self._probe.loss(examples) + penalty
        value = loss.item()
        if not math.isfinite(value):
            raise InputError(
                f"the loss became {value}: check the features and word vectors, or "
                "lower --learning-rate"
            )
        loss.backward()
        if settings.gradient_value:
            torch.nn.utils.clip_grad_value_(self._parameters, settings.gradient_value)
        if settings.gradient_norm:
            torch.nn.utils.clip_grad_norm_(self._parameters, settings.gradient_norm)
        self._optimiser.step()
        self._decay.step()
        return value


def length_batches(
    lengths: Sequence[int], batch_size: int, generator: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield every row once, in batches of rows of like length, in random order.

    The rows are shuffled and cut into chunks of `CHUNK` batches; within a chunk they
    are sorted by length.
    """
    order = generator.permutation(len(lengths))
    sizes = np.asarray(lengths)
    batches = []
    for start in range(0, len(order), CHUNK * batch_size):
        chunk = order[start : start + CHUNK * batch_size]
        by_length = chunk[np.argsort(sizes[chunk], kind="stable")]
        batches += np.split(by_length, range(batch_size, len(chunk), batch_size))
    # In their own order, the batches of a chunk would go from short to long examples.
    for place in generator.permutation(len(batches)):
        yield batches[place]
