"""How is a probe trained: batches, optimiser, patience on the development set, best weights?"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch

from downstream.probe.settings import TrainingSettings
from downstream.probe.task import Probe
from elmoc.errors import InputError
from elmoc.progress import progress_bar

Example = TypeVar("Example")
Prediction = TypeVar("Prediction")

CHUNK = 20
"""Batches are made of examples of like length within random chunks of so many batches."""

DECAY_UPDATES = 100
"""`decay` multiplies the learning rate once in so many updates (Lee et al. 2018)."""


@dataclass(frozen=True)
class Epoch:
    """One epoch: the mean loss of its batches, the development score in percent, and the seconds of its updates."""

    loss: float
    dev_score: float
    seconds: float


@dataclass(frozen=True)
class TrainingReport:
    """How the training of a probe went; `best_epoch` counts from 1."""

    best_epoch: int
    epochs: list[Epoch]
    seconds: float
    """The whole training, development scores included."""
    examples_per_second: float
    """Training alone."""

    @property
    def dev_score(self) -> float:
        """The best development score, in percent."""
        return self.epochs[self.best_epoch - 1].dev_score


def train_probe(
    probe: Probe[Example, Prediction],
    *,
    train: Sequence[Example],
    lengths: Sequence[int],
    evaluate: Callable[[], float],
    settings: TrainingSettings,
    generator: np.random.Generator,
    title: str,
    unit: str = "examples",
) -> TrainingReport:
    """Train `probe` and leave it with the weights of its best epoch.

    lengths    the length of each example of `train`, for batches of examples of like length
    evaluate   gives the development score; higher is better
    generator  orders the batches; all else that is random comes from torch's global generator
    title      stands before the progress bar, which counts `unit`
    """
    parameters = [parameter for parameter in probe.parameters() if parameter.requires_grad]
    optimiser, decay, plateau = _optimiser(parameters, settings)
    epochs: list[Epoch] = []
    best_epoch, best_score = 0, -math.inf
    best_weights: dict[str, torch.Tensor] = {}
    begin = time.perf_counter()
    with progress_bar(total=settings.epochs * len(train), desc=title, unit=f" {unit}", unit_scale=True) as progress:
        for epoch in range(1, settings.epochs + 1):
            epoch_begin = time.perf_counter()
            probe.train()
            losses = []
            for batch in length_batches(lengths, settings.batch_size, generator):
                optimiser.zero_grad(set_to_none=True)
                loss = probe.loss([train[row] for row in batch]) + settings.mix_l2 * probe.inputs.mix_penalty()
                losses.append(loss.item())
                if not math.isfinite(losses[-1]):
                    raise InputError(
                        f"the loss of {title} became {losses[-1]} in epoch {epoch}: check the features and word "
                        "vectors for values that are no numbers, or lower --learning-rate"
                    )
                loss.backward()
                if settings.gradient_value:
                    torch.nn.utils.clip_grad_value_(parameters, settings.gradient_value)
                if settings.gradient_norm:
                    torch.nn.utils.clip_grad_norm_(parameters, settings.gradient_norm)
                optimiser.step()
                decay.step()
                progress.update(len(batch))
            seconds = time.perf_counter() - epoch_begin
            score = evaluate()
            epochs.append(Epoch(loss=sum(losses) / len(losses), dev_score=score, seconds=seconds))
            if settings.halve_on_plateau:
                plateau.step(score)
            if score > best_score:
                best_epoch, best_score = epoch, score
                best_weights = {name: weight.clone() for name, weight in probe.state_dict().items()}
            progress.set_postfix_str(
                f"epoch {epoch}, dev {score:.2f}, best {best_score:.2f} in epoch {best_epoch}", refresh=False
            )
            if epoch - best_epoch >= settings.patience:
                break
    probe.load_state_dict(best_weights)
    return TrainingReport(
        best_epoch=best_epoch,
        epochs=epochs,
        seconds=time.perf_counter() - begin,
        examples_per_second=len(epochs) * len(train) / sum(one.seconds for one in epochs),
    )


def _optimiser(
    parameters: list[torch.nn.Parameter], settings: TrainingSettings
) -> tuple[torch.optim.Optimizer, Any, torch.optim.lr_scheduler.ReduceLROnPlateau]:
    """The optimiser, its schedule by updates, and its schedule by epochs."""
    optimiser: torch.optim.Optimizer
    if settings.optimiser == "adadelta":
        optimiser = torch.optim.Adadelta(parameters, lr=settings.learning_rate, rho=0.95)
    else:
        optimiser = torch.optim.Adam(parameters, lr=settings.learning_rate)
    decay = torch.optim.lr_scheduler.StepLR(optimiser, step_size=DECAY_UPDATES, gamma=settings.decay)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, mode="max", factor=0.5, patience=0)
    return optimiser, decay, plateau


def predict_all(
    probe: Probe[Example, Prediction], examples: Sequence[Example], *, lengths: Sequence[int], batch_size: int
) -> list[Prediction]:
    """The predictions of `probe` (without dropout) for all `examples`, in their order."""
    probe.eval()
    order = np.argsort(lengths, kind="stable")
    predictions: list[Prediction] = []
    with torch.inference_mode():
        for start in range(0, len(order), batch_size):
            predictions += probe.predict([examples[row] for row in order[start : start + batch_size]])
    return [predictions[place] for place in np.argsort(order)]


def length_batches(lengths: Sequence[int], batch_size: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield every row once, in batches of rows of like length, in random order.

    The rows are shuffled and cut into chunks of `CHUNK` batches; within a chunk they are sorted by length.
    """
    order = generator.permutation(len(lengths))
    sizes = np.asarray(lengths)
    batches = []
    for start in range(0, len(order), CHUNK * batch_size):
        chunk = order[start : start + CHUNK * batch_size]
        chunk = chunk[np.argsort(sizes[chunk], kind="stable")]
        batches += [chunk[first : first + batch_size] for first in range(0, len(chunk), batch_size)]
    for place in generator.permutation(len(batches)):
        yield batches[place]
