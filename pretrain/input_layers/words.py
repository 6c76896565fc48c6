"""A lookup of words: a trained vector for each word type, as language models have it (Press and Wolf 2017)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.word_vectors.lexicon_vectors import LexiconVectors
from elmoc.word_vectors.stored import StoredVectors
from pretrain.input_layers import InputLayerSettings, LexiconTable
from pretrain.input_layers.lookup import LookupNetwork, NumberTable


class WordNetwork(LookupNetwork):
    """The vectors of words as they are: U of Press and Wolf (2017, Section 3), and S where they are tied."""

    title = "lookup of words"

    def __init__(self, words: Sequence[str], projection_size: int) -> None:
        super().__init__(len(words), projection_size)
        self._words = words

    def stored(self) -> LexiconVectors:
        return LexiconVectors(self.vectors(), self._words)

    @torch.no_grad()
    def load(self, stored: StoredVectors) -> None:
        """Take over the vectors of the words by their spelling; a word that the other lacks begins as its `<unk>`."""
        if not isinstance(stored, LexiconVectors):
            raise InputError("the model has no lookup of words: choose its input_layer.kind")
        self.rows.copy_(torch.from_numpy(stored.lookup(self._words)))


@dataclass(frozen=True)
class WordInput(InputLayerSettings):
    """A trained vector of `encoder.projection_size` numbers for each word type; `data.input_vectors` is not read."""

    kind: ClassVar[str] = "words"
    shared: ClassVar[bool] = True

    def open_table(self, corpus: Corpus, name: str) -> NumberTable:
        corpus.require_words()
        return NumberTable("words", corpus)

    def build(self, projection_size: int, table: LexiconTable) -> WordNetwork:
        assert isinstance(table, NumberTable)
        return WordNetwork(table.types, projection_size)
