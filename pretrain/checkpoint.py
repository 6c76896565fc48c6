"""Checkpoints: what one holds, and whether its tensors fit the run that goes on from it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from elmoc.encoders.bidirectional import check_finite, check_weights
from elmoc.errors import InputError
from elmoc.settings import setting
from pretrain.data.windows import Position

FORMAT = "elmoc-checkpoint"
VERSION = 2


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """All that going on needs, as `torch.save` has it; see `TrainState` for what it does not say here.

    encoder, heads: the weights of encoder and output layers, by their names in model directories.
    optimisers, generators, recurrent: of each direction; `recurrent` has the tensors [B, …] of each layer. What
        the directions share has optimisers, too.
    best_cosine: the best value so far of the held-out metric that chooses the model (`metric` of
        `OutputLayerSettings`); the name is from when there was only the cosine.
    averages: of each direction and each shared part the averages of its weights, where the run has them.
    input: the weights of a trained network that makes word vectors.
    device: the kind of device that the generators are of.
    data: the fingerprints of corpus and tables.
    metrics_bytes: of `metrics.jsonl`, that belong to it.
    unlogged: for each direction float64 [n, 3], what the updates since the last line of `metrics.jsonl` did (see
        `DirectionStep`).
    evaluated: the update of the last evaluation.
    longest_evaluation: in seconds.
    """

    update: int = setting(least=0)
    updates: int = setting(least=1)
    words: int = setting(least=0)
    masked: int = setting(least=0)
    seconds: float = setting(least=0)
    best_update: int | None
    best_cosine: float | None
    position: Position
    device: str = setting(choices=("cpu", "cuda"))
    encoder: dict[str, Tensor]
    heads: dict[str, Tensor]
    optimisers: dict[str, dict[str, Any]]
    generators: dict[str, Tensor]
    recurrent: dict[str, list[tuple[Tensor, ...]] | None]
    data: dict[str, str]
    metrics_bytes: int = setting(least=0)
    unlogged: dict[str, Tensor] = field(default_factory=dict)
    evaluated: int = 0
    averages: dict[str, list[Tensor]] = field(default_factory=dict)
    input: dict[str, Tensor] = field(default_factory=dict)
    longest_evaluation: float = setting(0.0, least=0)

    def __post_init__(self) -> None:
        for name, most in (("update", self.updates), ("best_update", self.update), ("evaluated", self.update)):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= most:
                raise InputError(f"{name} must be at least 0 and at most {most}, not {value}")

    def to_dict(self) -> dict[str, Any]:
        """Tensors and plain values."""
        return {**vars(self), "position": asdict(self.position)}

    def release(self) -> None:
        """Let go of the tensors that a state has taken over, wherever else this checkpoint is held."""
        for name in ("encoder", "heads", "optimisers", "generators", "recurrent", "averages", "input"):
            getattr(self, name).clear()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Checkpoint":
        """From `to_dict`'s result."""
        return cls(**{**values, "position": Position(**values["position"])})


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """The tensors in nested dictionaries, lists and tuples, by names such as `recurrent.forward.0.1`."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping | list | tuple):
        for key, each in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from flat(each, f"{name}.{key}" if name else str(key))


def check_tensors(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Raise an `InputError` unless tensors have the names, shapes and types of the `expected` ones, and are finite."""
    for name, tensor in found.items():
        if tensor.layout != torch.strided:
            raise InputError(f"{name} is not a dense tensor")
    check_weights(found, expected)
    check_finite(found)
