"""What does one update do?"""

import math
from typing import NamedTuple

import numpy as np
import torch

from elmoc.errors import InputError
from elmoc.recurrence import LSTMState
from pretrain.continuous_output import CosineLoss, cosine_loss
from pretrain.setup import Assembly
from pretrain.side_by_side import DirectionRunner
from pretrain.train_state import RecurrentState, TrainState, parameters_of
from pretrain.vector_streaming import Batch


class DirectionStep(NamedTuple):
    """What one update did in one direction."""

    loss: float
    gradient_norm: float
    masked: int
    """Targets without a direction."""


def train_step(
    assembly: Assembly, state: TrainState, batch: Batch, rate: float, runner: DirectionRunner
) -> dict[str, DirectionStep]:
    """One update of every direction, side by side where `runner` says so; also what others train is in the result."""
    state.encoder.train()
    return assembly.processes.of_leaders(runner.map(lambda direction: update(assembly, state, batch, direction, rate)))


def update(assembly: Assembly, state: TrainState, batch: Batch, direction: str, rate: float) -> DirectionStep:
    """One update of one direction: loss, gradients, their norm bounded, Adam; its recurrent state goes on.

    Raises `InputError` when the loss or the norm of the gradient is not finite; the direction's weights are then still
    those of the update before.
    """
    config = assembly.config
    encoder = state.encoder.direction(direction)
    peers = assembly.processes.groups[direction]
    streams = len(batch.rows[direction]) * peers.parts
    # drawn for all the streams, so that it does not matter which process reads which
    masks = [
        mask if mask is None else mask[peers.own(streams)]  # [B / parts, P]
        for mask in encoder.draw_dropout_masks(streams, state.generators[direction])
    ]
    with assembly.autocast():
        output = encoder(batch.inputs(direction), state.recurrent[direction], dropout_masks=masks)
        predictions = state.heads.direction(direction)(output.top)  # [B, T, E]
    own = cosine_loss(predictions, batch.targets(direction))
    everywhere = CosineLoss(*peers.sum(own.total.detach(), own.counted, own.masked))
    loss = everywhere.mean.item()
    require_finite(loss, f"the {direction} loss", state.update + 1)
    # the mean over all the streams has the sum of these gradients
    own._replace(counted=everywhere.counted).mean.backward()
    peers.wait_for_gradients()
    norm = torch.nn.utils.clip_grad_norm_(
        parameters_of(state.encoder, state.heads, direction), config.optimiser.gradient_norm
    )
    require_finite(norm.item(), f"the norm of the {direction} gradient", state.update + 1)
    optimiser = state.optimisers[direction]
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    state.recurrent[direction] = detached(output.state) if config.train.carry_state else None
    return DirectionStep(loss, norm.item(), int(everywhere.masked))


def require_finite(value: float, what: str, update: int) -> None:
    """Raise an `InputError` when a figure of an update is not finite."""
    if not math.isfinite(value):
        raise InputError(
            f"{what} is {value} at update {update}: start a new run with a lower schedule.base (by --init-from "
            "from this one's model, if you like), or check the vector tables for rows that are not finite"
        )


def detached(states: list[LSTMState]) -> RecurrentState:
    """The same state in float32, cut off from the graph."""
    return [LSTMState(state.hidden.detach().float(), state.cell.detach().float()) for state in states]


def summary(recent: list[dict[str, DirectionStep]]) -> dict[str, float]:
    """Mean loss and gradient norm over some updates, for each direction and (the loss) over both."""
    values = {
        f"{direction}_{name}": float(np.mean([getattr(steps[direction], name) for steps in recent]))
        for direction in recent[0]
        for name in ("loss", "gradient_norm")
    }
    return {"loss": float(np.mean([values[f"{direction}_loss"] for direction in recent[0]]))} | values
