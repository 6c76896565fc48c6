"""A lookup of subwords: which trained vector has each unit of a corpus of subwords, for both directions?"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.word_vectors.stored import StoredVectors
from elmoc.word_vectors.subwords import Subwords, SubwordVectors
from pretrain.input_layers import InputLayerSettings, LexiconTable
from pretrain.input_layers.lookup import LookupNetwork, NumberTable


class SubwordTable(NumberTable):
    """The units of a corpus of subwords, by their numbers."""

    def __init__(self, corpus: Corpus) -> None:
        self.subwords = Subwords.of_corpus(corpus)
        super().__init__("subwords", corpus)


class SubwordNetwork(LookupNetwork):
    """√P times the vectors of units, as Vaswani et al. (2017, Section 3.4) have it.

    Vectors of a softmax are so short, beside the layer states of an encoder with layer norm, that it would hardly see
    what it reads.
    """

    title = "lookup of subwords"

    def __init__(self, subwords: Subwords, projection_size: int) -> None:
        super().__init__(len(subwords.units), projection_size)
        self._subwords = subwords
        self.scale = projection_size**0.5

    def stored(self) -> SubwordVectors:
        return SubwordVectors(self.vectors(), self._subwords.units, self._subwords.merges)

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
