"""A lookup of subwords: which trained vector has each unit of a corpus of subwords, for both directions?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.word_vectors.stored import StoredVectors
from elmoc.word_vectors.subwords import Subwords, SubwordVectors
from pretrain.input_layers import InputLayerSettings, InputNetwork, LexiconTable, MadeTable


class SubwordTable(MadeTable):
    """The units of a corpus of subwords: what is known of each is its number.

    rows  int32 [V, 1]
    """

    def __init__(self, corpus: Corpus) -> None:
        self.subwords = Subwords.of_corpus(corpus)
        numbers = np.arange(corpus.types, dtype=np.int32)[:, np.newaxis]
        super().__init__("subwords", numbers, corpus.lexicon_fingerprint)


class SubwordNetwork(InputNetwork):
    """√P times the vectors of units, as Vaswani et al. (2017, Section 3.4) have it.

    Vectors of a softmax are so short, beside the layer states of an encoder with layer norm, that it would hardly see
    what it reads. Where they are tied, they are those of the output layer, and not its own.
    """

    title = "lookup of subwords"

    def __init__(self, subwords: Subwords, projection_size: int) -> None:
        super().__init__()
        self._subwords = subwords
        self.own: nn.Parameter | None = nn.Parameter(torch.empty(len(subwords.units), projection_size))
        self.scale = projection_size**0.5
        self._tied: tuple[nn.Parameter, ...] = ()  # in a tuple, so that it is no parameter of this module
        nn.init.normal_(self.own, std=projection_size**-0.5)

    @property
    def rows(self) -> nn.Parameter:
        """[V, P]"""
        [rows] = self._tied if self.own is None else (self.own,)
        return rows

    def tie(self, rows: nn.Parameter) -> None:
        self._tied, self.own = (rows,), None

    def forward(self, rows: Tensor) -> Tensor:
        """Numbers of units int32 [n, 1] → float32 [n, P]."""
        return self.scale * F.embedding(rows[:, 0].long(), self.rows)

    def stored(self) -> SubwordVectors:
        vectors = self.scale * self.rows.detach().float().cpu()
        return SubwordVectors(vectors, self._subwords.units, self._subwords.merges)

    @torch.no_grad()
    def load(self, stored: StoredVectors) -> None:
        if not isinstance(stored, SubwordVectors):
            raise InputError("the model has no lookup of subwords: choose its input_layer.kind")
        if list(stored.merges) != list(self._subwords.merges) or sorted(stored.units) != sorted(self._subwords.units):
            raise InputError(
                "the subwords of the corpus are others than those of the model: make the corpus by `python -m "
                "data_scripts.build_subwords … --like MODEL`"
            )
        row_of = {unit: row for row, unit in enumerate(stored.units)}  # numbered by their counts in another corpus
        self.rows.copy_(stored.vectors[[row_of[unit] for unit in self._subwords.units]] / self.scale)


@dataclass(frozen=True)
class SubwordInput(InputLayerSettings):
    """A trained vector of `encoder.projection_size` numbers for each unit; `data.input_vectors` is not read."""

    kind: ClassVar[str] = "subwords"
    shared: ClassVar[bool] = True

    def open_table(self, corpus: Corpus, name: str) -> SubwordTable:
        return SubwordTable(corpus)

    def build(self, projection_size: int, table: LexiconTable) -> SubwordNetwork:
        assert isinstance(table, SubwordTable)
        return SubwordNetwork(table.subwords, projection_size)
