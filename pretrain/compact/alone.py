"""ALONE: how are the vectors of all words made of one base vector, which each word
masks in its own way?

Takase and Kobayashi (2020), with the values of its Section 3.1; filters come from the
hash of a word.
Letters: n words, E width of vectors, D_o width of the base vector, D_inter units
between.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from msgspec import Meta
from torch import Generator, Tensor, nn

from elmoc.word_vectors.coded_rows import FilteredRows, Filters, hash_words
from pretrain.compact.learning import LearnerSettings, learn, squared_distance

# D_o, M, c and p_o, of which the paper found no other values better, and words of an
# update.
BASE_SIZE = 300
COLUMNS = 8
CHOICES = 64
ZEROS = 0.5
BATCH = 256
# Words whose error is computed at once.
MEASURED = 4_096


@dataclass(frozen=True, kw_only=True)
class AloneSettings(LearnerSettings):
    """How ALONE is learned; the defaults are the paper's."""

    filter: Annotated[
        Literal["binary", "real"], Meta(description="what masks the base vector")
    ] = "real"
    inner_size: Annotated[
        int, Meta(ge=1, le=1 << 20, description="D_inter, units between")
    ] = 1_200
    fixed_base: Annotated[
        bool, Meta(description="whether the base vector stays as it is drawn")
    ] = False
    epochs: Annotated[
        int, Meta(ge=1, description="times that as many words are read as there are")
    ] = 1_000
    learning_rate: Annotated[float, Meta(gt=0, le=1, description="of Adam")] = 1e-3


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
        vectors: Tensor = self.outer(torch.relu(self.inner(masks * self.base)))
        return vectors


def learn_alone(
    words: Sequence[str], rows: np.ndarray, settings: AloneSettings
) -> tuple[FilteredRows, list[str]]:
    """A network that makes vectors like float32 [n, E] of words, the same from the same
    seed, and lines to print.
    """
    filters = Filters(
        BASE_SIZE,
        COLUMNS,
        CHOICES,
        settings.seed,
        ZEROS if settings.filter == "binary" else None,
    )
    hashes = hash_words(words)
    vectors = torch.from_numpy(rows)
    torch.manual_seed(settings.seed)
    network = FilteredNetwork(
        BASE_SIZE, settings.inner_size, rows.shape[1], fixed_base=settings.fixed_base
    )

    def error_of(batch: Tensor) -> Tensor:
        return squared_distance(
            vectors[batch],
            network(torch.from_numpy(filters.masks(hashes[batch.numpy()]))),
        )

    def loss(generator: Generator) -> Tensor:
        return error_of(torch.randint(len(words), (BATCH,), generator=generator))

    @torch.no_grad()
    def error() -> float:
        blocks = torch.arange(len(words)).split(MEASURED)
        return float(sum(error_of(block) * len(block) for block in blocks)) / len(words)

    steps = settings.epochs * -(-len(words) // BATCH)
    learn(network, loss, error, settings, steps)
    inner, outer = (
        layer.weight.detach().numpy().astype(np.float16)
        for layer in (network.inner, network.outer)
    )
    learned = FilteredRows(
        filters, hashes, base=network.base.detach().numpy(), inner=inner, outer=outer
    )
    distinct = np.unique(filters.numbers(hashes), axis=0)
    return learned, [f"words with the filter of another: {len(words) - len(distinct)}"]
