"""Contestants: the ways to train the same encoder that are compared."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

import torch

from elmoc.devices import has_bf16
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.errors import InputError
from pretrain.data.batches import Batch
from pretrain.execution.cuda_graph import UNTIL_RECORDED
from pretrain.setup import TrainingSetup
from pretrain.speed.allennlp_loop import allennlp_encoder
from pretrain.speed.matrix_products import TimedProduct, fused_products, step_by_step_products
from pretrain.train import new_train_step
from pretrain.train_state import TrainState, new_state

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
BASELINE = "allennlp"
"""The contestant that the others are compared with."""


def copied(encoder: BidirectionalEncoder, *, fast: bool) -> BidirectionalEncoder:
    """A copy of an encoder that runs by the fused recurrence (`fast`) or the plain one."""
    with torch.device("meta"):  # without weights of its own
        other = BidirectionalEncoder(encoder.config, directions=encoder.directions, fast=fast)
    other.to(next(encoder.parameters()).dtype)
    other.load_weights({name: value.clone() for name, value in encoder.weights().items()}, assign=True)
    return other


def allennlp(encoder: BidirectionalEncoder) -> BidirectionalEncoder:
    """AllenNLP's loop; an `InputError` where the package is missing."""
    try:
        return allennlp_encoder(encoder)
    except InputError as error:
        raise InputError(f"the contestant allennlp is not there: {error}, or leave it out of --contestants") from None


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
PLAIN = (partial(copied, fast=False), partial(step_by_step_products, inputs_at_once=True))
FUSED = (partial(copied, fast=True), fused_products)
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
    return replace(setup, data=replace(setup.data, streams=streams))


def untimed_updates(name: str, warm_up: int) -> int:
    """`warm_up`, or as many as it takes until a contestant that runs by a CUDA graph has recorded it."""
    return max(warm_up, UNTIL_RECORDED) if WAYS[name].graph else warm_up


class Contestant:
    """One way of training, ready to make updates of `setup`'s streams from the weights of its modules."""

    def __init__(self, name: str, setup: TrainingSetup) -> None:
        way = WAYS[name]
        self.name = name
        self.precision = way.precision
        self.dtype = DTYPES[way.precision]
        self.rate = setup.config.schedule.base  # which one makes no difference to speed
        config, data = setup.config, setup.data
        self.setup = replace(
            setup,
            config=replace(config, train=replace(config.train, carry_state=True, cuda_graph=way.graph)),
            encoder=way.encoder(setup.encoder),
            output_layers=deepcopy(setup.output_layers),
            execution=replace(setup.execution, precision=way.precision),
        )
        self.state: TrainState = new_state(
            self.setup.encoder,
            self.setup.output_layers,
            config.optimiser,
            seed=data.seed,
            device=setup.execution.device,
        )
        # AllenNLP's is the published way: one direction after the other
        self.train_step = new_train_step(self.setup, self.state, side_by_side=way.encoder is not allennlp)
        self.products = way.products(self.setup.encoder.config, data.targets.size, data.streams, data.window)

    def update(self, batch: Batch) -> None:
        """One update of every direction, as training makes it."""
        self.train_step(batch, self.rate)

    def close(self) -> None:
        """End its threads."""
        self.train_step.close()
