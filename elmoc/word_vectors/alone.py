"""ALONE: how does a network make a vector of any string, of which nothing is kept?

Every string masks one base vector in its own way, and a network reads what is left
(Takase and Kobayashi 2020). The hash of its letters chooses the columns of random
filters, whose sum is the mask: a string that no text had gets a vector, too.
Models that read such vectors have the file (`alone.safetensors`) in their directory.
Letters: n words, D_o width of the base vector, M filters of c columns, D_inter units
between, E width of vectors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.devices import CPU, autocast
from elmoc.errors import reading
from elmoc.settings import convert
from elmoc.weights import check_weights, contiguous
from elmoc.word_vectors.coded_rows import hash_words
from elmoc.word_vectors.sources import finite
from elmoc.word_vectors.stored import StoredVectors

# p_o of binary masks: the paper found no other value better (Section 3.1).
ZEROS = 0.5
# Words that are looked up at once: their masks take 20 MB at the most.
_MOST_WORDS = 1024


@dataclass(frozen=True, kw_only=True)
class AloneConfig:
    """The sizes of the network, and its filters (Section 2.1), none of which is stored.

    size: E.
    base_size: D_o.
    inner_size: D_inter.
    filters: M.
    entries: c.
    zeros: p_o, the share of zeros of a binary mask; None is a real one.
    seed: of the columns, and of what a word's hash chooses.
    """

    # A damaged number could make gigabytes of columns. Within these bounds they take
    # 300 MB; the paper's take 600 KB.
    size: Annotated[int, Meta(ge=1, le=1 << 20)]
    base_size: Annotated[int, Meta(ge=1, le=4096)] = 300
    inner_size: Annotated[int, Meta(ge=1, le=1 << 20)] = 1200
    filters: Annotated[int, Meta(ge=1, le=16)] = 8
    entries: Annotated[int, Meta(ge=2, le=1024)] = 64
    zeros: Annotated[float, Meta(gt=0, lt=1)] | None = None
    seed: Annotated[int, Meta(ge=0)] = 1

    def columns(self) -> np.ndarray:
        """float32 [M, c, D_o]: of Bernoulli(1 − p_o^(1/M)) where binary, else Gaussian
        with deviation M^−½.
        """
        generator = np.random.Generator(np.random.Philox(key=self.seed))
        shape = (self.filters, self.entries, self.base_size)
        if self.zeros is None:
            drawn = generator.standard_normal(shape, dtype=np.float32)
            return drawn / np.float32(self.filters**0.5)
        least = self.zeros ** (1 / self.filters)
        return (generator.random(shape, dtype=np.float32) >= least).astype(np.float32)

    def numbers(self, words: Sequence[str]) -> np.ndarray:
        """int16 [n, M]: the columns that words have, by the mixing step of
        SplitMix64.
        """
        # Constants of SplitMix64 (Steele et al. 2014).
        first = np.uint64(self.seed * self.filters % 2**63)
        steps = np.arange(1, self.filters + 1, dtype=np.uint64) + first
        mixed = hash_words(words)[:, None] + steps * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        return (mixed % np.uint64(self.entries)).astype(np.int16)


class AloneNetwork(nn.Module):
    """W2 · max(0, W1 · (m_w ⊙ o)): equation 3 of the paper, without biases. Its vectors
    begin with a deviation of E^−½.

    base: o, [D_o].
    inner: W1.
    outer: W2.
    columns: of the filters, [M, c, D_o]; no parameter.
    """

    columns: Tensor

    def __init__(self, config: AloneConfig) -> None:
        super().__init__()
        self.config = config
        self.base = nn.Parameter(torch.randn(config.base_size))
        self.inner = nn.Linear(config.base_size, config.inner_size, bias=False)
        self.outer = nn.Linear(config.inner_size, config.size, bias=False)
        nn.init.normal_(self.inner.weight, std=config.base_size**-0.5)
        # Half of the units between are zeros.
        deviation = (2 / (config.inner_size * config.size)) ** 0.5
        nn.init.normal_(self.outer.weight, std=deviation)
        # The seed makes them again.
        self.register_buffer(
            "columns", torch.from_numpy(config.columns()), persistent=False
        )

    def masks(self, numbers: Tensor) -> Tensor:
        """m_w, [n, D_o], of words with these columns [n, M]: min(1, their sum) where
        binary, else the sum.
        """
        masks = self.columns.new_zeros(len(numbers), self.config.base_size)
        for columns, chosen in zip(self.columns, numbers.long().T, strict=True):
            masks += columns[chosen]
        return masks if self.config.zeros is None else masks.clamp(max=1)

    def forward(self, numbers: Tensor, dropout: Tensor | None = None) -> Tensor:
        """The vectors [n, E] of words with these columns [n, M]; a mask of `dropout`
        [D_inter] is that of the units between.
        """
        hidden = torch.relu(self.inner(self.masks(numbers) * self.base))
        kept = hidden if dropout is None else hidden * dropout
        return F.linear(kept, self.outer.weight)


class AloneVectors(StoredVectors):
    """The vectors that such a network makes; the same word in another batch has the
    same vector up to rounding.

    Args:
        config: of the network.
        weights: float32, by their names in it.
        origin: of the vectors.

    Raises:
        InputError: the weights are of another network.
    """

    file_name = "alone.safetensors"
    format = "elmoc-alone-vectors"

    def __init__(
        self,
        config: AloneConfig,
        weights: Mapping[str, Tensor],
        origin: str = file_name,
    ) -> None:
        self.config = config
        self.weights = weights
        self.origin = origin
        self.size = config.size
        with reading(origin):
            with torch.device("meta"):
                self._network = AloneNetwork(config)
            check_weights(weights, self._network.state_dict())
            self._network.load_state_dict(weights, assign=True)

    @classmethod
    def of_network(cls, network: AloneNetwork) -> "AloneVectors":
        """Its vectors as they are now."""
        return cls(network.config, contiguous(network.state_dict()))

    def description(self) -> dict[str, Any]:
        return super().description() | asdict(self.config)

    def tensors(self) -> dict[str, Tensor]:
        return dict(self.weights)

    @classmethod
    def from_file(
        cls, info: Mapping[str, Any], tensors: dict[str, Tensor], origin: str
    ) -> "AloneVectors":
        return cls(convert(info, AloneConfig, where=origin), tensors, origin)

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]."""
        numbers = torch.from_numpy(self.config.numbers(words))
        # In float32, whatever a user's own autocast says.
        with torch.inference_mode(), autocast(CPU, "float32"):
            made = [self._network(block) for block in numbers.split(_MOST_WORDS)]
        return finite(torch.cat(made).numpy(), words, self.origin)
