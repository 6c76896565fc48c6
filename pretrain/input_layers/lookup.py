"""A lookup: what do trained input networks have in common that have a vector for each type of a corpus?

Letters: V lexicon size, n types of a window, P projection.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.corpus import Corpus
from pretrain.input_layers import InputNetwork, MadeTable


class NumberTable(MadeTable):
    """What is known of each type of a corpus is its number.

    rows   int32 [V, 1]
    types  V strings
    """

    def __init__(self, name: str, corpus: Corpus) -> None:
        numbers = np.arange(corpus.types, dtype=np.int32)[:, np.newaxis]
        super().__init__(name, numbers, corpus.lexicon_fingerprint)
        self.types = corpus.lexicon


class LookupNetwork(InputNetwork):
    """`scale` times the vectors of types: its own, or where they are tied the output layer's."""

    scale = 1.0

    def __init__(self, types: int, projection_size: int) -> None:
        super().__init__()
        self.own: nn.Parameter | None = nn.Parameter(torch.empty(types, projection_size))
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
        """Numbers of types int32 [n, 1] → float32 [n, P]."""
        return self.scale * F.embedding(rows[:, 0].long(), self.rows)

    def vectors(self) -> Tensor:
        """float32 [V, P], on the CPU: what it gives the encoder."""
        return self.scale * self.rows.detach().float().cpu()
