"""ALONE as what is trained: how do all words share one vector, which each of them masks
in its own way (Takase and Kobayashi 2020)?

Both directions share the network, and a tied softmax, too. Letters: V lexicon size, n
words, M filters, D_inter units between, P projection.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from msgspec import Meta
from torch import Generator, Tensor

from elmoc.corpus import Corpus
from elmoc.word_vectors.alone import ZEROS, AloneConfig, AloneNetwork, AloneVectors
from pretrain.input_layers import (
    InputLayerSettings,
    MadeTable,
    SharingNetwork,
    require_same,
)


class TrainedAlone(SharingNetwork):
    """The network.

    all_numbers: int16 [V, M], the columns of all types; no parameter.
    """

    title = "network of ALONE"
    all_numbers: Tensor

    def __init__(
        self, settings: "AloneInput", projection_size: int, corpus: Corpus
    ) -> None:
        super().__init__()
        config = settings.config(projection_size)
        self.network = AloneNetwork(config)
        self.network.base.requires_grad_(not settings.fixed_base)
        self.dropout = settings.dropout
        numbers = torch.from_numpy(config.numbers(corpus.lexicon))
        self.register_buffer("all_numbers", numbers, persistent=False)

    def forward(self, rows: Tensor, generator: Generator | None = None) -> Tensor:
        """Columns of words int16 [n, M] → float32 [n, P]; nothing is dropped without a
        generator.
        """
        return self.network(rows, self._mask(generator)).float()

    def _mask(self, generator: Generator | None) -> Tensor | None:
        """The mask [D_inter] of the units between, one a window, as in encoders; None
        where nothing is dropped.
        """
        if generator is None or not (self.training and self.dropout):
            return None
        kept = torch.full_like(self.network.inner.weight[:, 0], 1 - self.dropout)
        return torch.bernoulli(kept, generator=generator) / (1 - self.dropout)

    def class_rows(self) -> Tensor:
        """[V, P], without dropout."""
        return self.forward(self.all_numbers)

    def stored(self) -> AloneVectors:
        return AloneVectors.of_network(self.network)

    def load(self, stored: AloneVectors) -> None:
        require_same(self.title, self.network.config, stored.config)
        self.network.load_state_dict(stored.weights)


@dataclass(frozen=True)
class AloneInput(InputLayerSettings):
    """A trained network of ALONE; `data.input_vectors` is not read."""

    kind: ClassVar[str] = "alone"
    shared: ClassVar[bool] = True

    filter: Annotated[
        Literal["binary", "real"], Meta(description="what masks the base vector")
    ] = "real"
    base_size: Annotated[
        int, Meta(ge=1, le=4096, description="D_o, width of the base vector")
    ] = 300
    inner_size: Annotated[
        int, Meta(ge=1, le=2**20, description="D_inter, units between")
    ] = 1200
    fixed_base: Annotated[
        bool, Meta(description="keep the base vector as it is drawn")
    ] = False
    dropout: Annotated[
        float,
        Meta(
            ge=0,
            lt=1,
            description="share of the units between that training sets to zero, one "
            "mask a window",
        ),
    ] = 0.1

    def config(self, projection_size: int) -> AloneConfig:
        """The sizes of the network."""
        return AloneConfig(
            size=projection_size,
            base_size=self.base_size,
            inner_size=self.inner_size,
            zeros=ZEROS if self.filter == "binary" else None,
        )

    def open_table(self, corpus: Corpus, name: str) -> MadeTable:
        """The columns of each word: int16 [V, M]."""
        corpus.require_words()
        numbers = self.config(1).numbers(corpus.lexicon)
        return MadeTable(self.kind, numbers, corpus.record.lexicon_fingerprint)

    def build(self, projection_size: int, corpus: Corpus) -> TrainedAlone:
        return TrainedAlone(self, projection_size, corpus)
