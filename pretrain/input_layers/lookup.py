"""Lookups: a trained vector for each type of a corpus, of words or of subwords, for
both directions.

Letters: V lexicon size, n types of a window, P projection.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from msgspec import Meta
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.word_vectors.stored import LexiconVectors, StoredVectors
from elmoc.word_vectors.subwords import Subwords, SubwordVectors
from pretrain.input_layers import InputLayerSettings, MadeTable, SharingNetwork


class LookupNetwork(SharingNetwork):
    """The vectors of words as they are: U of Press and Wolf (2017, Section 3), and S
    where a softmax shares them.
    """

    title = "lookup of words"
    scale = 1.0

    def __init__(self, corpus: Corpus, size: int) -> None:
        super().__init__()
        self.types = corpus.lexicon
        self.rows = nn.Parameter(torch.empty(len(self.types), size))  # [V, P]
        nn.init.normal_(self.rows, std=size**-0.5)

    def forward(self, rows: Tensor, generator: Generator | None = None) -> Tensor:
        """Numbers of types int32 [n, 1] → float32 [n, P]."""
        return self.scale * F.embedding(rows[:, 0].long(), self.rows)

    def class_rows(self) -> Tensor:
        """[V, P], not scaled."""
        return self.rows

    def vectors(self) -> Tensor:
        """float32 [V, P], on the CPU: what it gives the encoder."""
        return self.scale * self.class_rows().detach().float().cpu()

    def stored(self) -> StoredVectors:
        return LexiconVectors(self.vectors(), self.types)

    @torch.no_grad()
    def load(self, stored: Any) -> None:
        """Take over the vectors of the words by their spelling; a word that the other
        lacks begins as its `<unk>`.
        """
        self.rows.copy_(torch.from_numpy(stored.lookup(self.types)))


class FactorisedNetwork(LookupNetwork):
    """Short vectors of words, and a matrix that makes them P wide (the factorised
    embedding beside which Takase and Kobayashi (2020, Section 3.2) set ALONE).
    """

    title = "factorised lookup of words"

    def __init__(self, corpus: Corpus, rank: int, projection_size: int) -> None:
        super().__init__(corpus, rank)
        self.wider = nn.Parameter(torch.empty(projection_size, rank))
        nn.init.normal_(self.wider, std=projection_size**-0.5)

    def forward(self, rows: Tensor, generator: Generator | None = None) -> Tensor:
        """Numbers of types int32 [n, 1] → float32 [n, P]."""
        return F.linear(super().forward(rows), self.wider).float()

    def class_rows(self) -> Tensor:
        return F.linear(self.rows, self.wider)

    @torch.no_grad()
    def load(self, stored: Any) -> None:
        """Take over the vectors of the words: their best approximation of this rank."""
        vectors = torch.from_numpy(stored.lookup(self.types))
        left, values, right = torch.linalg.svd(vectors, full_matrices=False)
        rank = self.rows.shape[1]
        self.rows.copy_(left[:, :rank] * values[:rank])
        self.wider.copy_(right[:rank].T)


class SubwordNetwork(LookupNetwork):
    """√P times the vectors of units, as Vaswani et al. (2017, Section 3.4) have it.

    Vectors of a softmax are so short, beside the layer states of an encoder with layer
    norm, that it would hardly see what it reads.
    """

    title = "lookup of subwords"

    def __init__(self, corpus: Corpus, projection_size: int) -> None:
        super().__init__(corpus, projection_size)
        self._subwords = Subwords.of_corpus(corpus)
        self.scale = projection_size**0.5

    def stored(self) -> StoredVectors:
        return SubwordVectors(self.vectors(), self._subwords)

    @torch.no_grad()
    def load(self, stored: SubwordVectors) -> None:
        """Take over the vectors of the units."""
        theirs = stored.subwords
        same_units = theirs.row_of.keys() == self._subwords.row_of.keys()
        if not same_units or list(theirs.merges) != list(self._subwords.merges):
            raise InputError(
                "the subwords of the corpus are not the model's: go on with the corpus "
                "that it was trained on"
            )
        self.rows.copy_(torch.from_numpy(stored.lookup(self.types)) / self.scale)


@dataclass(frozen=True)
class WordInput(InputLayerSettings):
    """A trained vector of `encoder.projection_size` numbers for each word type;
    `data.input_vectors` is not read.
    """

    kind: ClassVar[str] = "words"
    shared: ClassVar[bool] = True

    def open_table(self, corpus: Corpus, name: str) -> MadeTable:
        # What is known of a type is its number: int32 [V, 1].
        numbers = np.arange(corpus.types, dtype=np.int32)[:, np.newaxis]
        return MadeTable(self.kind, numbers, corpus.record.lexicon_fingerprint)

    def build(self, projection_size: int, corpus: Corpus) -> LookupNetwork:
        corpus.require_words()
        return LookupNetwork(corpus, projection_size)


@dataclass(frozen=True)
class SubwordInput(WordInput):
    """A trained vector of `encoder.projection_size` numbers for each unit;
    `data.input_vectors` is not read.
    """

    kind: ClassVar[str] = "subwords"

    def build(self, projection_size: int, corpus: Corpus) -> SubwordNetwork:
        return SubwordNetwork(corpus, projection_size)


@dataclass(frozen=True)
class FactorisedInput(WordInput):
    """A trained vector of `rank` numbers for each word type, and a trained matrix that
    makes `encoder.projection_size` of them; `data.input_vectors` is not read.
    """

    kind: ClassVar[str] = "factorised"

    rank: Annotated[
        int, Meta(ge=1, le=2**20, description="numbers of a word's own")
    ] = 64

    def build(self, projection_size: int, corpus: Corpus) -> FactorisedNetwork:
        corpus.require_words()
        if self.rank > min(projection_size, corpus.types):
            raise InputError(
                f"input_layer.rank={self.rank} must be at most "
                f"encoder.projection_size, {projection_size}, and the number of types, "
                f"{corpus.types:,}"
            )
        return FactorisedNetwork(corpus, self.rank, projection_size)
