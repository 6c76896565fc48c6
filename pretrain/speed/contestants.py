"""Contestants: the ways to train the same encoder that are compared."""

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
from pretrain.speed.matrix_products import TimedProduct, fused_products, step_by_step_products
from pretrain.step import record_updates, train_step
from pretrain.train_state import TrainState, new_state

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
BASELINE = "allennlp"
"""The contestant that the others are compared with."""


def with_recurrence(recurrence: Callable[[], Recurrence], encoder: BidirectionalEncoder) -> BidirectionalEncoder:
    """A copy of an encoder with another recurrence."""
    with torch.device("meta"):  # without weights of its own
        other = BidirectionalEncoder(encoder.config, directions=encoder.directions, recurrence=recurrence)
    other.load_state_dict({name: value.clone() for name, value in encoder.state_dict().items()}, assign=True)
    return other


def fused(encoder: BidirectionalEncoder) -> BidirectionalEncoder:
    """The fused recurrence, whose layers share a workspace as in training."""
    return with_recurrence(partial(FusedRecurrence, Workspace()), encoder)


def allennlp(encoder: BidirectionalEncoder) -> BidirectionalEncoder:
    """AllenNLP's loop; an `InputError` where the package is missing."""
    try:
        from pretrain.speed.allennlp_loop import allennlp_encoder
    except ImportError:
        raise InputError(
            "the contestant allennlp needs allennlp-light: pip install allennlp-light, or leave it out of --contestants"
        ) from None
    return allennlp_encoder(encoder)


@dataclass(frozen=True)
class Way:
    """How a contestant trains."""

    precision: str
    encoder: Callable[[BidirectionalEncoder], BidirectionalEncoder]
    """From an encoder, one of the same function with weights of its own."""
    products: Callable[[EncoderConfig, int, int, int], list[TimedProduct]]
    """From the encoder's sizes, the target size, streams and window: what an update of a direction multiplies."""
    graph: bool = False
    """Whether an update is launched as a CUDA graph."""


ALLENNLP = (allennlp, partial(step_by_step_products, inputs_at_once=False))
PLAIN = (partial(with_recurrence, plain), partial(step_by_step_products, inputs_at_once=True))
FUSED = (fused, fused_products)
WAYS = {
    "allennlp": Way("fp32", *ALLENNLP),
    "allennlp-bf16": Way("bf16", *ALLENNLP),
    "plain": Way("fp32", *PLAIN),
    "plain-bf16": Way("bf16", *PLAIN),
    "fused-fp32": Way("fp32", *FUSED),
    "fused-bf16": Way("bf16", *FUSED),
    "fused-fp32-graph": Way("fp32", *FUSED, graph=True),
    "fused-bf16-graph": Way("bf16", *FUSED, graph=True),
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
        self.dtype = DTYPES[way.precision]
        self.rate = setup.config.schedule.base  # which one makes no difference to speed
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
        # AllenNLP's is the published way: one direction after the other
        runner = InTurn if way.encoder is allennlp else DirectionThreads
        self.runner = runner(encoder.directions, setup.device)
        train = setup.config.train
        self.recorded = record_updates(self.setup, self.state) if way.graph else None
        self.products = way.products(encoder.config, setup.targets.size, train.streams, train.window)

    def update(self, batch: Batch) -> None:
        """One update of every direction, as training makes it."""
        train_step(self.setup, self.state, batch, self.rate, self.runner, self.recorded)

    def close(self) -> None:
        """End its threads."""
        self.runner.close()
