"""What both learners share: the vectors that they read, the loop that they train by,
and the errors of vectors that are made again.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn

from elmoc.errors import InputError, note
from elmoc.files.text import read_lines
from elmoc.process import progress_bar
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.sources import WordVectors
from experiments.compact.learners.options import CompactOptions

# Steps of a part, after which the error is measured (Shu and Nakayama 2018, Section
# 5.1).
PART = 1_000


def read_rows(options: CompactOptions) -> tuple[list[str], np.ndarray]:
    """Words and their vectors, float32 [n, E]; words without a vector, which are zeros,
    are left out.
    """
    # each word once, in the order of the file
    distinct = list(dict.fromkeys(filter(None, read_lines(options.words))))
    words = distinct[: options.most or None]
    rows = open_word_vectors(options.vectors, only=words).lookup(words)
    known = np.flatnonzero(rows.any(axis=1))
    if not len(known):
        raise InputError(
            f"{options.vectors} has no vector for any of the {len(words):,} words"
        )
    if len(known) < len(words):
        note(f"{len(words) - len(known):,} words without a vector are left out")
    return [words[row] for row in known.tolist()], rows[known]


def learn(
    model: nn.Module,
    loss: Callable[[], Tensor],
    error: Callable[[], float],
    *,
    steps: int,
    learning_rate: float,
) -> None:
    """Minimise a loss by Adam, and leave the model with the weights of the part that
    has the least error.

    Args:
        model: whose parameters with gradients are trained.
        loss: of a batch, a scalar.
        error: of the model with its present weights.
        steps: updates.
        learning_rate: of Adam.
    """
    optimiser = torch.optim.Adam(model.parameters(), learning_rate)
    least = error()
    best = deepcopy(model.state_dict())
    with progress_bar(total=steps, desc="learning", unit=" steps") as bar:
        for done in range(0, steps, PART):
            for _ in range(min(PART, steps - done)):
                optimiser.zero_grad(set_to_none=True)
                loss().backward()
                optimiser.step()
                bar.update()
            found = error()
            if found < least:
                least = found
                best = deepcopy(model.state_dict())
            bar.set_postfix_str(f"error {found:.4g}, least {least:.4g}", refresh=False)
    model.load_state_dict(best)


def squared_distance(vectors: Tensor, others: Tensor) -> Tensor:
    """The mean over words of ‖e − ẽ‖², a scalar, of vectors and their reconstructions
    [n, E]: the loss of both papers.
    """
    return (vectors - others).square().sum(dim=1).mean()


def reconstruction(words: Sequence[str], rows: np.ndarray, vectors: WordVectors) -> str:
    """How far the vectors of words are from rows float32 [n, E]: what a file that was
    written gives.
    """
    found = vectors.lookup(words)
    errors = squared_lengths(rows - found)
    squares = squared_lengths(rows)
    centred = squared_lengths(rows - rows.mean(axis=0))
    lengths = np.sqrt(squares) * np.linalg.norm(found, axis=1)
    # a vector of zeros has a cosine of 0
    cosine = np.mean((rows * found).sum(axis=1) / np.maximum(lengths, 1e-30))
    return (
        f"loss ‖e − ẽ‖² {errors.mean():.4g} (‖e‖² {squares.mean():.4g}, "
        f"around their mean {centred.mean():.4g}), "
        f"distance {np.sqrt(errors).mean():.4g}, cosine {cosine:.4f}"
    )


def squared_lengths(rows: np.ndarray) -> np.ndarray:
    """float64 [n] of rows [n, E]."""
    return np.square(rows).sum(axis=1, dtype=np.float64)
