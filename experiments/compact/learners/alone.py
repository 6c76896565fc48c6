"""ALONE: how is a network learned that makes the given vectors of words?

Takase and Kobayashi (2020, Section 3.1), with its values.
Letters: n words, E width of vectors.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from elmoc.word_vectors.alone import ZEROS, AloneConfig, AloneNetwork, AloneVectors
from experiments.compact.learners.learning import learn, squared_distance
from experiments.compact.learners.options import CompactOptions

# Words of an update, and Adam's rate (Section 3.1).
BATCH = 256
LEARNING_RATE = 1e-3
# Words whose error is computed at once.
MEASURED = 4_096


def learn_alone(
    words: Sequence[str], rows: np.ndarray, options: CompactOptions
) -> AloneVectors:
    """A network that makes vectors of words, the same from the same seed.

    Args:
        words: n of them.
        rows: their vectors, float32 [n, E].
        options: how it is learned.
    """
    config = AloneConfig(
        size=rows.shape[1],
        inner_size=options.inner_size,
        zeros=ZEROS if options.filter == "binary" else None,
        seed=options.seed,
    )
    numbers = torch.from_numpy(config.numbers(words))
    vectors = torch.from_numpy(rows)
    torch.manual_seed(options.seed)
    network = AloneNetwork(config)
    network.base.requires_grad_(not options.fixed_base)

    def error_of(batch: Tensor) -> Tensor:
        return squared_distance(vectors[batch], network(numbers[batch]))

    def loss() -> Tensor:
        return error_of(torch.randint(len(words), (BATCH,)))

    @torch.no_grad()
    def error() -> float:
        blocks = torch.arange(len(words)).split(MEASURED)
        return float(sum(error_of(block) * len(block) for block in blocks)) / len(words)

    learn(
        network,
        loss,
        error,
        steps=options.epochs * math.ceil(len(words) / BATCH),
        learning_rate=options.learning_rate or LEARNING_RATE,
    )
    return AloneVectors.of_network(network)
