"""Output layers: what does the layer that an encoder is trained against have to say of
itself?

A new output layer is a file beside this one with two classes, its settings (`kind`,
`build`, `record`, `scorer`) and its module (`forward`, `predict`), and a name in
`KINDS` of `pretrain/config.py`: see docs/extending.md.
Letters: B streams, T time, P projection, E width of target vectors, N targets, U
candidates, V lexicon size.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, cast

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn

from elmoc.corpus import Corpus
from elmoc.encoders.bidirectional import direction_name
from pretrain.input_layers import InputNetwork, LexiconTable

# The name of an output layer that all directions share, in model directories and
# checkpoints.
SHARED = "shared"
# The candidates that are the types of a window's targets; others are drawn
# (`SampleSettings`).
TYPES_OF_TARGETS = "types of targets"
# Occurrences of a type that is not read, so that the log of its share is finite.
LEAST_COUNT = 0.5


def shares(counts: np.ndarray) -> np.ndarray:
    """float64 [V]: the share of each type in a text, from its count there [V]."""
    return np.where(counts > 0, counts, LEAST_COUNT) / counts.sum()


def class_counts(counts: np.ndarray, types: int) -> np.ndarray:
    """[C]: the first `types` (0: all) of counts [V], then the sum of all rarer ones, if
    there are any.
    """
    if not 0 < types < len(counts):
        return counts
    return np.append(counts[:types], counts[types:].sum())


class Candidates(NamedTuple):
    """The distinct types that the targets of a window are told from.

    vectors: float32 [U, E], their vectors in the target table; None where the output
        layer reads none.
    log_frequency: float32 [U], the log of the share of each in the text read.
    log_chance: float32 [U], the log of the chance that each is a candidate of another
        target.
    labels: int64 [B, T], the index of each target among the candidates.
    ids: int64 [U], rows of the lexicon, or classes; in a `Batch` with target vectors,
        rows of these; None where there are vectors.
    shared: the first `shared` are candidates of every target, each later one of the
        targets of its type alone.
    """

    vectors: Tensor | None
    log_frequency: Tensor
    log_chance: Tensor
    labels: Tensor
    ids: Tensor | None = None
    shared: int = 0

    def map(self, function: Callable[[Tensor], Tensor]) -> "Candidates":
        """The candidates with a function of each of their tensors."""
        return Candidates._make(
            function(value) if isinstance(value, Tensor) else value for value in self
        )


class Targets(NamedTuple):
    """The words that a window has to predict.

    ids: int64 [B, T], rows of the lexicon.
    vectors: float32 [B, T, E], their vectors in the target table; None where the output
        layer reads none, or asks for candidates.
    candidates: where the output layer asks for them.
    """

    ids: Tensor
    vectors: Tensor | None
    candidates: Candidates | None = None


class Loss(NamedTuple):
    """The loss of a batch, and what it was taken over: scalars, to which other
    processes add theirs.

    total: summed over the counted targets.
    counted: the number of targets that the loss is taken over.
    masked: the number of targets that are left out.
    """

    total: Tensor
    counted: Tensor
    masked: Tensor


class OutputLayer(nn.Module, ABC):
    """The output layer of one direction, or of all that share it: it owns its weights
    and its loss.

    adagrad: the settings of `new_adagrad` for a shared layer with sparse gradients;
        None: the optimiser of the run, as for all others.
    """

    adagrad: dict[str, float] | None = None

    def tie(self, network: InputNetwork | None) -> None:
        """Share the vectors of the network that makes inputs, where settings say so."""

    @abstractmethod
    def forward(self, states: Tensor, targets: Targets) -> Loss:
        """The loss of the top layer states [B, T, P] against the words they have to
        predict.
        """

    @abstractmethod
    def predict(self, states: Tensor) -> Tensor:
        """What a `Scorer` of this kind scores, float32 [..., D], from top layer states
        [..., P].
        """


class Scorer(Protocol):
    """Scores the held-out predictions of one direction."""

    def score(
        self,
        layer: OutputLayer,
        predictions: Tensor,
        ids: np.ndarray,
        parts: Mapping[str, slice],
    ) -> dict[str, dict[str, float]]:
        """For parts of predictions [N, D] of the types `ids` [N], their metrics by the
        name of the part.

        Among them is the `metric` of `OutputLayerSettings`. Beside each stands the best
        constant prediction's, named `constant_…`, where there is one.
        """


@dataclass(frozen=True)
class SampleSettings:
    """Candidates that are drawn, log-uniformly by rank, for all targets of a window,
    and each target's own type.
    """

    samples: Annotated[
        int,
        Meta(
            description="distinct types that are drawn for each window and direction, "
            "on average"
        ),
    ]
    types: Annotated[
        int,
        Meta(
            description="K, the most frequent ones, may be drawn; rarer types are "
            "the class K, `<unk>`; 0: all types"
        ),
    ] = 0


@dataclass(frozen=True)
class OutputLayerSettings(ABC):
    """The settings of one kind of output layer, `output_layer.…` in a config, and all
    that training knows of the kind.

    kind: its name in configs and model directories.
    reads_target_vectors: whether vectors of the targets are streamed for it.
    shared: whether the directions share one layer.
    """

    kind: ClassVar[str]
    reads_target_vectors: ClassVar[bool] = False
    shared: ClassVar[bool] = False

    @property
    def candidates(self) -> str | SampleSettings | None:
        """The candidates that are streamed for it, with their vectors if it reads
        these: `TYPES_OF_TARGETS`, or types that are drawn; None: none.
        """
        return None

    @property
    def metric(self) -> str:
        """The held-out metric that chooses the exported model; higher is better."""
        # the least noisy of the metrics that compare between kinds
        return "reciprocal_rank"

    @abstractmethod
    def build(
        self, *, projection_size: int, corpus: Corpus, targets: LexiconTable
    ) -> OutputLayer:
        """An output layer with random weights."""

    @abstractmethod
    def record(self, *, corpus: Corpus, targets: LexiconTable) -> dict[str, Any]:
        """What tells it apart from others, for a model directory: `kind` and more;
        `origin` is not compared.
        """

    @abstractmethod
    def scorer(
        self,
        *,
        corpus: Corpus,
        counts_read: np.ndarray,
        targets: LexiconTable,
        candidates: int,
        device: torch.device,
    ) -> Scorer:
        """What scores its predictions, the true word among the `candidates` most
        frequent types; `counts_read` [V] is how often an epoch reads each type.
        """


class OutputLayers(nn.ModuleDict):
    """The output layers of a model: one a direction, by `direction_name`, without any
    weight in common, or a single one for all, named `SHARED`.
    """

    def direction(self, name: str) -> OutputLayer:
        """The output layer of one direction."""
        own = SHARED if SHARED in self else direction_name(name)
        return cast("OutputLayer", self[own])
