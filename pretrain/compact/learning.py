"""What both learners have: their settings, the loop that they train by, and the errors
of what is learned.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from msgspec import Meta
from torch import Generator, Tensor, nn

from elmoc.process import progress_bar
from elmoc.word_vectors.sources import WordVectors

# Steps of a part, after which the error is measured (Shu and Nakayama 2018, Section
# 5.1).
PART = 1_000
# Between the seeds of the parts of two runs: PyTorch's generator takes the last 32 bits
# of a seed alone.
SEEDS_APART = 15_485_863


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """What both learners are told."""

    learning_rate: Annotated[float, Meta(gt=0, le=1, description="of Adam")] = 1e-4
    seed: Annotated[int, Meta(ge=0, lt=2**31, description="of all that is random")] = 1


def learn(
    model: nn.Module,
    loss: Callable[[Generator], Tensor],
    error: Callable[[], float],
    settings: LearnerSettings,
    steps: int,
) -> None:
    """Minimise a loss by Adam, and leave the model with the weights of the part that
    has the least error.

    Args:
        model: whose parameters with gradients are trained.
        loss: of a batch, a scalar, of which all that is random is drawn from the
            generator; a part has its own one.
        error: of the model with its present weights.
        settings: learning rate and seed.
        steps: updates.
    """
    optimiser = torch.optim.Adam(
        [each for each in model.parameters() if each.requires_grad],
        settings.learning_rate,
    )
    least = error()
    best = deepcopy(model.state_dict())
    with progress_bar(total=steps, desc="learning", unit=" steps") as bar:
        for done in range(0, steps, PART):
            generator = Generator().manual_seed(settings.seed * SEEDS_APART + done)
            for _ in range(min(PART, steps - done)):
                optimiser.zero_grad(set_to_none=True)
                loss(generator).backward()
                optimiser.step()
                bar.update()
            if (found := error()) < least:
                least = found
                best = deepcopy(model.state_dict())
            bar.set_postfix_str(f"error {found:.4g}, least {least:.4g}", refresh=False)
    model.load_state_dict(best)


def squared_distance(vectors: Tensor, others: Tensor) -> Tensor:
    """The scalar mean over words of ‖e − ẽ‖², of vectors and their reconstructions [n,
    E]: the loss of both papers.
    """
    return (vectors - others).square().sum(dim=1).mean()


def reconstruction(words: Sequence[str], rows: np.ndarray, vectors: WordVectors) -> str:
    """How far the vectors of words are from rows float32 [n, E]: what a file that was
    written gives.
    """
    found = vectors.lookup(words)
    squares, of_rows, centred = (
        np.square(each).sum(axis=1, dtype=np.float64)
        for each in (rows - found, rows, rows - rows.mean(axis=0))
    )
    lengths = np.sqrt(of_rows) * np.linalg.norm(found, axis=1)
    cosine = np.mean((rows * found).sum(axis=1) / np.maximum(lengths, 1e-30))
    return (
        f"loss ‖e − ẽ‖² {squares.mean():.4g} (‖e‖² {of_rows.mean():.4g}, around their mean {centred.mean():.4g}), "
        f"distance {np.sqrt(squares).mean():.4g}, cosine {cosine:.4f}"
    )
