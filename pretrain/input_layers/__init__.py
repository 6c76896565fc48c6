"""Input layers: what does the encoder read of each word, and which trained network, if
any, makes vectors of it?

A new input layer is a file beside this one with its settings (`kind`, `open_table`,
`build`) and, if it is trained, its network (`forward`, `stored`, `load`), and a name in
`KINDS` of `pretrain/config.py`.
Letters: V lexicon size, n words, D numbers that are known of a word, P projection.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Generator, Tensor, nn

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.word_vectors.sources import VectorSource
from elmoc.word_vectors.stored import StoredVectors
from elmoc.word_vectors.table import VectorTable
from elmoc.word_vectors.transform import VectorTransform

# The name of a trained input network in checkpoints.
INPUT = "input"


class MadeTable:
    """A table that is made when a run begins, for a network that it trains; nothing of
    it is on disk. Its attributes are those of `VectorTable`.

    Args:
        name: of what is known of each word.
        rows: [V, D]
        fingerprint: what tells it apart from others of the same name.
    """

    zero_rows = 0

    def __init__(self, name: str, rows: np.ndarray, fingerprint: str) -> None:
        self.name = name
        self.rows = rows
        self.size = int(rows.shape[1])
        self.source = VectorSource(name, fingerprint, self.size, "none")
        # which changes nothing
        self.transform = VectorTransform(np.zeros((2, self.size), dtype=np.float32))


# What is known of each word of the lexicon, such as its vector; the rows of a window
# are streamed.
LexiconTable = VectorTable | MadeTable


class InputNetwork(nn.Module, ABC):
    """A trained network that makes a vector of a word, the same for both directions, as
    the original ELMo has it.

    title: what it is called in print.
    """

    title: ClassVar[str]

    @abstractmethod
    def forward(self, rows: Tensor, generator: Generator | None = None) -> Tensor:
        """Rows of the input table [n, D] → float32 [n, P]; dropout is drawn from the
        generator.
        """

    @abstractmethod
    def stored(self) -> StoredVectors:
        """What makes the same vectors, for model directories."""

    @abstractmethod
    def load(self, stored: Any) -> None:
        """Take over the weights of another, of the class that `stored` returns; an
        `InputError` where it has other sizes.
        """


def require_same(title: str, ours: object, theirs: object) -> None:
    """Raise an `InputError` where the sizes of a network to take over are others."""
    if theirs != ours:
        raise InputError(f"the {title} is another one: here {ours}, there {theirs}")


class SharingNetwork(InputNetwork):
    """A network that has a vector of each type of the corpus, which a softmax may
    share.
    """

    @abstractmethod
    def class_rows(self) -> Tensor:
        """[V, P]"""


@dataclass(frozen=True)
class InputLayerSettings(ABC):
    """The settings of one kind of input, `input_layer.…` in a config, and all that
    training has to know of the kind.

    kind: its name in configs.
    shared: whether the directions share a trained network.
    """

    kind: ClassVar[str]
    shared: ClassVar[bool] = False

    @abstractmethod
    def open_table(self, corpus: Corpus, name: str) -> LexiconTable:
        """The table; `name` is `data.input_vectors`."""

    @abstractmethod
    def build(self, projection_size: int, corpus: Corpus) -> InputNetwork | None:
        """The network, with random weights; None where the rows of the table are read
        as they are.
        """


@dataclass(frozen=True)
class VectorInput(InputLayerSettings):
    """Frozen word vectors: the table `data.input_vectors`."""

    kind: ClassVar[str] = "vectors"

    def open_table(self, corpus: Corpus, name: str) -> VectorTable:
        return VectorTable(corpus, name)

    def build(self, projection_size: int, corpus: Corpus) -> None:
        return None
