"""ALONE: how are the vectors of all words made of one base vector, which each word
masks in its own way?

Takase and Kobayashi (2020), with the values of its Section 3.1; filters come from the
hash of a word.
Letters: n words, E width of vectors, D_o width of the base vector, D_inter units
between.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Generator, Tensor, nn

from elmoc.word_vectors.coded_rows import FilteredRows, Filters, hash_words
from experiments.compact.learners.learning import learn, squared_distance
from experiments.compact.learners.options import CompactOptions

# D_o, M, c and p_o: the paper found no other values better.
BASE_SIZE = 300
COLUMNS = 8
CHOICES = 64
ZEROS = 0.5
# Words of an update, and Adam's rate, in the paper.
BATCH = 256
LEARNING_RATE = 1e-3
# Words whose error is computed at once.
MEASURED = 4_096


class FilteredNetwork(nn.Module):
    """W2 · max(0, W1 · (m_w ⊙ o)): equation 3 of the paper, without biases."""

    def __init__(
        self, base_size: int, inner_size: int, size: int, *, fixed_base: bool
    ) -> None:
        super().__init__()
        self.base = nn.Parameter(torch.randn(base_size), requires_grad=not fixed_base)
        self.inner = nn.Linear(base_size, inner_size, bias=False)
        self.outer = nn.Linear(inner_size, size, bias=False)

    def forward(self, masks: Tensor) -> Tensor:
        """Filters m_w [n, D_o] → vectors [n, E]."""
        return self.outer(torch.relu(self.inner(masks * self.base)))


def learn_alone(
    words: Sequence[str], rows: np.ndarray, options: CompactOptions
) -> FilteredRows:
    """A network that makes vectors of words, the same from the same seed.

    Args:
        words: n of them.
        rows: their vectors, float32 [n, E].
        options: how it is learned.

    Returns:
        What a file of compact vectors has.
    """
    zeros = ZEROS if options.filter == "binary" else None
    filters = Filters(BASE_SIZE, COLUMNS, CHOICES, options.seed, zeros)
    hashes = hash_words(words)
    vectors = torch.from_numpy(rows)
    torch.manual_seed(options.seed)
    network = FilteredNetwork(
        BASE_SIZE, options.inner_size, rows.shape[1], fixed_base=options.fixed_base
    )

    def error_of(batch: Tensor) -> Tensor:
        # masks are made anew for each batch: those of all words would fill the memory
        masks = torch.from_numpy(filters.masks(hashes[batch.numpy()]))
        return squared_distance(vectors[batch], network(masks))

    def loss(generator: Generator) -> Tensor:
        return error_of(torch.randint(len(words), (BATCH,), generator=generator))

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
        seed=options.seed,
    )
    return FilteredRows(
        filters,
        hashes,
        base=network.base.detach().numpy(),
        inner=network.inner.weight.detach().numpy().astype(np.float16),
        outer=network.outer.weight.detach().numpy().astype(np.float16),
    )
