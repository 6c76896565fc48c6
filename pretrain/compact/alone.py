"""ALONE: how are the vectors of all words made of one base vector, which each word masks in its own way?

Takase and Kobayashi (2020), with the values of its Section 3.1; filters come from the hash of a word.
Letters: n words, E width of vectors, D_o width of the base vector, D_inter units between.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor, nn

from elmoc.settings import setting
from elmoc.word_vectors.coded_rows import FilteredRows, Filters, hash_words
from pretrain.compact.learning import LearnerSettings, learn, squared_distance

# M, c and p_o, of which the paper found no other values better.
COLUMNS, CHOICES, ZEROS = 8, 64, 0.5
# Words whose error is computed at once.
MEASURED = 4_096


@dataclass(frozen=True, kw_only=True)
class AloneSettings(LearnerSettings):
    """How ALONE is learned; the defaults are the paper's."""

    filter: str = setting("real", help="what masks the base vector", choices=("binary", "real"))
    base_size: int = setting(300, help="D_o, numbers of the base vector", least=1, most=1 << 16)
    inner_size: int = setting(1_200, help="D_inter, units between", least=1, most=1 << 20)
    fixed_base: bool = setting(False, help="whether the base vector stays as it is drawn")
    epochs: int = setting(1_000, help="times that as many words are read as there are", least=1)
    batch_size: int = setting(256, help="words of an update", least=1)
    learning_rate: float = setting(1e-3, help="of Adam", above=0, most=1)

    def new_filters(self) -> Filters:
        """The filters of words."""
        return Filters(self.base_size, COLUMNS, CHOICES, self.seed, ZEROS if self.filter == "binary" else None)


class FilteredNetwork(nn.Module):
    """W2 · max(0, W1 · (m_w ⊙ o)): equation 3 of the paper, without biases."""

    def __init__(self, base_size: int, inner_size: int, size: int, *, fixed_base: bool) -> None:
        super().__init__()
        self.base = nn.Parameter(torch.randn(base_size), requires_grad=not fixed_base)
        self.inner = nn.Linear(base_size, inner_size, bias=False)
        self.outer = nn.Linear(inner_size, size, bias=False)

    def forward(self, masks: Tensor) -> Tensor:
        """Filters m_w [n, D_o] → vectors [n, E]."""
        vectors: Tensor = self.outer(torch.relu(self.inner(masks * self.base)))
        return vectors


def learn_alone(words: Sequence[str], rows: np.ndarray, settings: AloneSettings) -> FilteredRows:
    """A network that makes vectors like float32 [n, E] of words, the same from the same seed."""
    filters, hashes, vectors = settings.new_filters(), hash_words(words), torch.from_numpy(rows)
    torch.manual_seed(settings.seed)
    network = FilteredNetwork(settings.base_size, settings.inner_size, rows.shape[1], fixed_base=settings.fixed_base)

    def error_of(batch: Tensor) -> Tensor:
        return squared_distance(vectors[batch], network(torch.from_numpy(filters.masks(hashes[batch.numpy()]))))

    def loss(generator: Generator) -> Tensor:
        return error_of(torch.randint(len(words), (settings.batch_size,), generator=generator))

    @torch.no_grad()
    def error() -> float:
        blocks = torch.arange(len(words)).split(MEASURED)
        return float(sum(error_of(block) * len(block) for block in blocks)) / len(words)

    steps = settings.epochs * -(-len(words) // settings.batch_size)
    learn(network, loss, error, settings, steps)
    inner, outer = (layer.weight.detach().numpy().astype(np.float16) for layer in (network.inner, network.outer))
    return FilteredRows(filters, hashes, base=network.base.detach().numpy(), inner=inner, outer=outer)
