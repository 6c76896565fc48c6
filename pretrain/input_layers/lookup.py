"""Lookups: a trained vector for each type of a corpus, of words or of subwords, for
both directions.

Letters: V lexicon size, n types of a window, P projection.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.word_vectors.stored import LexiconVectors, StoredVectors
from elmoc.word_vectors.subwords import Subwords, SubwordVectors
from pretrain.input_layers import InputLayerSettings, InputNetwork, MadeTable


class LookupNetwork(InputNetwork):
    """The vectors of words as they are: U of Press and Wolf (2017, Section 3), and S
    where they are tied.
    """

    title = "lookup of words"
    scale = 1.0

    def __init__(self, corpus: Corpus, projection_size: int) -> None:
        super().__init__()
        self.types = corpus.lexicon
        rows = torch.empty(len(self.types), projection_size)
        nn.init.normal_(rows, std=projection_size**-0.5)
        self.own: nn.Parameter | None = nn.Parameter(rows)
        # the rows of an output layer, once tied; a tuple hides them from PyTorch, which
        # would take them for parameters of this module, too
        self._tied: tuple[nn.Parameter, ...] = ()

    @property
    def rows(self) -> nn.Parameter:
        """[V, P]"""
        return self._tied[0] if self.own is None else self.own

    def tie(self, rows: nn.Parameter) -> None:
        """Read the vectors [V, P] of an output layer, to which they belong."""
        self._tied = (rows,)
        self.own = None

    def forward(self, rows: Tensor) -> Tensor:
        """Numbers of types int32 [n, 1] → float32 [n, P]."""
        return self.scale * F.embedding(rows[:, 0].long(), self.rows)

    def vectors(self) -> Tensor:
        """float32 [V, P], on the CPU: what it gives the encoder."""
        return self.scale * self.rows.detach().float().cpu()

    def stored(self) -> StoredVectors:
        return LexiconVectors(self.vectors(), self.types)

    @torch.no_grad()
    def load(self, stored: Any) -> None:
        """Take over the vectors of the words by their spelling; a word that the other
        lacks begins as its `<unk>`.
        """
        self.rows.copy_(torch.from_numpy(stored.lookup(self.types)))


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
        """Take over the vectors of the units, which another corpus numbers by its own
        counts.
        """
        theirs = stored.subwords
        same_units = theirs.row_of.keys() == self._subwords.row_of.keys()
        if not same_units or list(theirs.merges) != list(self._subwords.merges):
            raise InputError(
                "the subwords of the corpus are not the model's: make the corpus by "
                "`python -m data_scripts.build_subwords … --like MODEL`"
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
        return MadeTable(self.kind, numbers, corpus.lexicon_fingerprint)

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
