"""Which ways to train the same encoder are compared?"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch

from elmoc.encoders.fused_recurrence import FusedRecurrence, Workspace
from elmoc.encoders.lstm import BidirectionalEncoder, EncoderConfig
from elmoc.encoders.recurrence import Recurrence, plain
from elmoc.errors import InputError
from elmoc.heads import ContinuousHeads
from pretrain.data.loader import Batch
from pretrain.execution.direction_threads import DirectionThreads
from pretrain.setup import TrainingSetup, has_bf16
from pretrain.speed.products import TimedProduct
from pretrain.speed.update_products import allennlp_products, fused_products, plain_products
from pretrain.step import record_updates, train_step
from pretrain.train_state import TrainState, new_state

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
BASELINE = "allennlp"
"""The contestant that the others are compared with."""


@dataclass(frozen=True)
class Way:
    """How a contestant trains."""

    precision: str
    encoder: Callable[[BidirectionalEncoder], BidirectionalEncoder]
    """StepInputs an encoder, one of the same function with weights of its own."""
    products: Callable[[EncoderConfig, int, int, int], list[TimedProduct]]
    """StepInputs the encoder's sizes, the target size, streams and window: what an update of a direction multiplies."""
    side_by_side: bool = True
    """Whether directions may run at the same time, as they do in training."""
    graph: bool = False
    """Whether an update is launched as a CUDA graph."""


def stepped_by(recurrence: Callable[[], Recurrence], encoder: BidirectionalEncoder) -> BidirectionalEncoder:
    """A copy of an encoder with another recurrence."""
    with torch.device("meta"):  # without weights of its own
        other = BidirectionalEncoder(encoder.config, directions=encoder.directions, recurrence=recurrence)
    other.load_state_dict({name: value.clone() for name, value in encoder.state_dict().items()}, assign=True)
    return other


def reference(encoder: BidirectionalEncoder) -> BidirectionalEncoder:
    """The plain recurrence."""
    return stepped_by(plain, encoder)


def fused(encoder: BidirectionalEncoder) -> BidirectionalEncoder:
    """The fused recurrence, whose layers share a workspace as in training."""
    return stepped_by(partial(FusedRecurrence, Workspace()), encoder)


def allennlp(encoder: BidirectionalEncoder) -> BidirectionalEncoder:
    """AllenNLP's loop; an `InputError` where the package is missing."""
    try:
        from pretrain.speed.allennlp_loop import allennlp_encoder
    except ImportError:
        raise InputError(
            "the contestant allennlp needs allennlp-light: pip install allennlp-light, or leave it out of --contestants"
        ) from None
    return allennlp_encoder(encoder)


WAYS = {
    "allennlp": Way("fp32", allennlp, allennlp_products, side_by_side=False),
    "allennlp-bf16": Way("bf16", allennlp, allennlp_products, side_by_side=False),
    "plain": Way("fp32", reference, plain_products),
    "plain-bf16": Way("bf16", reference, plain_products),
    "fused-fp32": Way("fp32", fused, fused_products),
    "fused-bf16": Way("bf16", fused, fused_products),
    "fused-fp32-graph": Way("fp32", fused, fused_products, graph=True),
    "fused-bf16-graph": Way("bf16", fused, fused_products, graph=True),
}


def why_not(name: str, device: torch.device) -> str | None:
    """Why a contestant cannot take part on a device; None when it can."""
    if WAYS[name].graph and device.type != "cuda":
        return "CUDA graphs need a GPU"
    if WAYS[name].precision == "bf16" and not has_bf16(device):
        return f"{device} has no bf16 instructions"
    return None


def with_streams(setup: TrainingSetup, streams: int) -> TrainingSetup:
    """The same run with another number of streams."""
    config = setup.config
    return replace(setup, config=replace(config, train=replace(config.train, streams=streams)))


class InTurn(DirectionThreads):
    """Runs every direction with all the threads, one after the other."""

    def __init__(self, directions: tuple[str, ...], device: torch.device) -> None:
        super().__init__(directions[:1], device)
        self.directions = directions


class Contestant:
    """One way of training, ready to make updates of `setup`'s streams from the weights of its modules."""

    def __init__(self, name: str, setup: TrainingSetup) -> None:
        way = WAYS[name]
        self.name = name
        self.precision = way.precision
        encoder = way.encoder(setup.encoder)
        heads = ContinuousHeads(
            directions=encoder.directions,
            projection_size=encoder.config.projection_size,
            target_size=setup.targets.size,
        )
        heads.load_state_dict(setup.heads.state_dict())
        self.setup = replace(setup, encoder=encoder, heads=heads, precision=way.precision)
        self.state: TrainState = new_state(
            encoder, heads, setup.config.optimiser, setup.config.train.seed, setup.device
        )
        runner = DirectionThreads if way.side_by_side else InTurn
        self.runner = runner(encoder.directions, setup.device)
        train = setup.config.train
        self.recorded = record_updates(self.setup, self.state) if way.graph else None
        self.products = way.products(encoder.config, setup.targets.size, train.streams, train.window)

    @property
    def dtype(self) -> torch.dtype:
        """Of the factors of its matrix products."""
        return DTYPES[self.precision]

    @property
    def rate(self) -> float:
        """The learning rate; which one makes no difference to speed."""
        return self.setup.config.schedule.base

    def update(self, batch: Batch) -> None:
        """One update of every direction, as training makes it."""
        train_step(self.setup, self.state, batch, self.rate, self.runner, self.recorded)

    def close(self) -> None:
        """End its threads."""
        self.runner.close()
