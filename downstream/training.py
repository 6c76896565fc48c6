"""How is a probe trained: batches, patience on the development set, best weights?"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from downstream.options import TrainingSettings
from downstream.task import Probe
from elmoc.errors import InputError
from elmoc.progress import progress_bar

Example = TypeVar("Example")
Prediction = TypeVar("Prediction")

CHUNK = 20
"""Batches are made of sentences of like length within random chunks of so many batches."""


@dataclass(frozen=True)
class TrainingReport:
    """How the training of a probe went; epochs count from 1, the score is in percent."""

    best_epoch: int
    epochs: int
    dev_score: float
    seconds: float
    """The whole training, development scores included."""
    sentences_per_second: float
    """Training alone."""


def train_probe(
    probe: Probe[Example, Prediction],
    *,
    train: Sequence[Example],
    lengths: Sequence[int],
    evaluate: Callable[[], float],
    settings: TrainingSettings,
    generator: np.random.Generator,
    title: str,
) -> TrainingReport:
    """Train `probe` with Adam and leave it with the weights of its best epoch.

    lengths    the length of each example of `train`, for batches of examples of like length
    evaluate   gives the development score; higher is better
    generator  orders the batches; all else that is random comes from torch's global generator
    title      stands before the progress bar
    """
    parameters = [parameter for parameter in probe.parameters() if parameter.requires_grad]
    optimiser = torch.optim.Adam(parameters, lr=settings.learning_rate)
    best_epoch, best_score = 0, -math.inf
    best_weights: dict[str, torch.Tensor] = {}
    begin, training_seconds = time.perf_counter(), 0.0
    with progress_bar(iterable=range(1, settings.epochs + 1), desc=title, unit="epoch") as progress:
        for epoch in progress:
            epoch_begin = time.perf_counter()
            probe.train()
            for batch in length_batches(lengths, settings.batch_size, generator):
                optimiser.zero_grad(set_to_none=True)
                loss = probe.loss([train[row] for row in batch])
                if not math.isfinite(loss.item()):
                    raise InputError(
                        f"the loss of {title} became {loss.item()} in epoch {epoch}: check the features and word "
                        "vectors for values that are no numbers, or lower --learning-rate"
                    )
                loss.backward()
                torch.nn.utils.clip_grad_norm_(parameters, settings.gradient_norm)
                optimiser.step()
            training_seconds += time.perf_counter() - epoch_begin
            score = evaluate()
            if score > best_score:
                best_epoch, best_score = epoch, score
                best_weights = {name: weight.clone() for name, weight in probe.state_dict().items()}
            progress.set_postfix_str(f"dev {score:.2f}, best {best_score:.2f} in epoch {best_epoch}", refresh=False)
            if epoch - best_epoch >= settings.patience:
                break
    probe.load_state_dict(best_weights)
    return TrainingReport(
        best_epoch=best_epoch,
        epochs=epoch,
        dev_score=best_score,
        seconds=time.perf_counter() - begin,
        sentences_per_second=epoch * len(train) / training_seconds,
    )


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
