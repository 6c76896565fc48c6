"""Input layers: what is known of each word of the lexicon, and the trained network, if any, that makes vectors of it.

Letters: V lexicon size, n words, D numbers that are known of a word, P projection.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
from torch import Tensor, nn

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.word_vectors.sources import VectorSource
from elmoc.word_vectors.stored import StoredVectors
from elmoc.word_vectors.subwords import FILE_NAME as SUBWORDS
from elmoc.word_vectors.table import VectorTable
from elmoc.word_vectors.transform import VectorTransform

INPUT = "input"
"""The name of a trained input network in checkpoints."""


class LexiconTable(Protocol):
    """What is known of each word of the lexicon, such as its vector; the rows of a window are streamed."""

    name: str
    path: Path
    """What tells tables apart."""
    rows: np.ndarray
    """[V, D]"""
    size: int
    """D"""
    source: VectorSource
    zero_rows: int
    """Words of which nothing is known."""

    @property
    def transform(self) -> VectorTransform:
        """What its vectors have been through, for words outside the table."""


class MadeTable:
    """A table that is made when a run begins, for a network that it trains; nothing of it is on disk.

    Args:
        name: of what is known.
        rows: [V, D]
        fingerprint: what tells it apart from others of the same name.
    """

    def __init__(self, name: str, rows: np.ndarray, fingerprint: str) -> None:
        self.name = name
        self.path = Path(name)
        self.rows = rows
        self.size: int = rows.shape[1]
        self.zero_rows = 0
        self.source = VectorSource(name, fingerprint, self.size, "none")

    @property
    def transform(self) -> VectorTransform:
        """One that changes nothing: the network reads what is known as it is."""
        return VectorTransform(np.zeros((2, self.size), dtype=np.float32))


class InputNetwork(nn.Module, ABC):
    """A trained network that makes a vector of a word, the same for both directions, as the original ELMo has it."""

    title: ClassVar[str]
    """What it is called in print."""

    @abstractmethod
    def forward(self, rows: Tensor) -> Tensor:
        """Rows of the input table [n, D] → float32 [n, P]."""

    @property
    @abstractmethod
    def multiplications(self) -> int:
        """How many there are at most in its products for a distinct word of a window."""

    @property
    @abstractmethod
    def activation_bytes(self) -> int:
        """What autograd keeps at most of a distinct word of a window."""

    @property
    def has_weights(self) -> bool:
        """Whether it has weights of its own: not where they are tied, and the output layer's."""
        return any(True for _ in self.parameters())

    def tie(self, rows: nn.Parameter) -> None:
        """Read the vectors [V, P] of an output layer, to which they belong; an `InputError` where it has no such."""
        raise InputError(
            f"output_layer.tied needs an input layer that has a vector for each type, and a {self.title} has none: "
            "choose input_layer.kind=subwords, or leave it out"
        )

    @abstractmethod
    def stored(self) -> StoredVectors:
        """What makes the same vectors, for model directories."""

    @abstractmethod
    def load(self, stored: StoredVectors) -> None:
        """Take over the weights of another; an `InputError` where it is of another kind or has other sizes."""


@dataclass(frozen=True)
class InputLayerSettings(ABC):
    """The settings of one kind of input, and all that training has to know of the kind."""

    kind: ClassVar[str]
    """Its name in configs."""
    shared: ClassVar[bool] = False
    """Whether there is a network, which all directions train."""

    @abstractmethod
    def open_table(self, corpus: Corpus, name: str) -> LexiconTable:
        """The table; `name` is `data.input_vectors`."""

    @abstractmethod
    def build(self, projection_size: int, table: LexiconTable) -> InputNetwork | None:
        """The network, with random weights; None where the rows of the table are read as they are."""


@dataclass(frozen=True)
class VectorInput(InputLayerSettings):
    """Frozen word vectors: the table `data.input_vectors`."""

    kind: ClassVar[str] = "vectors"

    def open_table(self, corpus: Corpus, name: str) -> VectorTable:
        table = VectorTable(corpus, name)
        if corpus.record.subwords and table.source.file_name != SUBWORDS:
            raise InputError(
                f"{corpus.path} is a corpus of subwords, and {table.path} was not made from such: choose "
                "input_layer.kind=subwords, or make the table from a model that reads them"
            )
        return table

    def build(self, projection_size: int, table: LexiconTable) -> None:
        return None
