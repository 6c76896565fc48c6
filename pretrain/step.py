"""What does one update do?"""

import math
from typing import NamedTuple

import numpy as np
import torch

from elmoc.errors import InputError
from elmoc.recurrence import LSTMState
from pretrain.continuous_output import cosine_loss
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
    """One update of every direction: loss, gradients, their norm bounded, Adam.

    Raises `InputError` when a loss is not a finite number; the weights are then still those of the update before.
    """
    state.encoder.train()
    steps = runner.map(lambda direction: backpropagate(assembly, state, batch, direction))
    for group in state.optimiser.param_groups:
        group["lr"] = rate
    state.optimiser.step()
    state.optimiser.zero_grad(set_to_none=True)
    return steps


def backpropagate(assembly: Assembly, state: TrainState, batch: Batch, direction: str) -> DirectionStep:
    """Loss and bounded gradients of one direction; its recurrent state goes on."""
    config = assembly.config
    with assembly.autocast():
        output = state.encoder.direction(direction)(
            batch.inputs(direction), state.recurrent[direction], generator=state.generators[direction]
        )
        predictions = state.heads.direction(direction)(output.top)  # [B, T, E]
    loss, _, masked = cosine_loss(predictions, batch.targets(direction))
    if not math.isfinite(loss.item()):
        raise InputError(
            f"the {direction} loss is {loss.item()} at update {state.update + 1}: lower schedule.base or check the "
            "vector tables for non-finite rows; --resume goes on from the last checkpoint, which is whole"
        )
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(
        parameters_of(state.encoder, state.heads, direction), config.optimiser.gradient_norm
    )
    state.recurrent[direction] = detached(output.state) if config.train.carry_state else None
    return DirectionStep(loss.item(), norm.item(), int(masked))


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
