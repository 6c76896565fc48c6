"""What does one update do?"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmoc.encoders.recurrence import LSTMState
from pretrain.data.loader import Batch
from pretrain.distributed.errors import RaisedTogether
from pretrain.execution.cuda_graph import CudaGraphStep, StepInputs, record_cuda_graph
from pretrain.execution.direction_threads import DirectionThreads
from pretrain.output_layers.continuous import CosineLoss, cosine_loss
from pretrain.setup import TrainingSetup
from pretrain.train_state import TrainState, parameters_of, set_rate


class DirectionStep(NamedTuple):
    """What one update did in one direction."""

    loss: float
    gradient_norm: float
    masked: int
    """Targets without a direction."""


class StepResult(NamedTuple):
    """The same before anybody has looked: what the device has computed, or is going to."""

    loss: Tensor
    gradient_norm: Tensor
    masked: Tensor
    state: list[LSTMState]
    """The recurrent state after the window."""


Computation = Callable[[StepInputs], StepResult]


def train_step(
    setup: TrainingSetup,
    state: TrainState,
    batch: Batch,
    rate: float,
    runner: DirectionThreads,
    recorded: Mapping[str, Computation] | None = None,
) -> dict[str, DirectionStep]:
    """One update of every direction, side by side where `runner` says so; also what others train is in the result.

    `recorded` has the computations of the directions, where they are not to be launched anew each time.

    Raises an `InputError`, in every process, when the loss or the norm of the gradient of a direction is not finite;
    that direction's weights are then still those of the update before.
    """
    state.encoder.train()

    def of_direction(direction: str) -> DirectionStep:
        return update(setup, state, batch, direction, rate, None if recorded is None else recorded[direction])

    steps = setup.processes.broadcast_from_leaders(runner.map(of_direction))
    for direction, step in steps.items():
        require_finite(step.loss, f"the {direction} loss", state.update + 1)
        require_finite(step.gradient_norm, f"the norm of the {direction} gradient", state.update + 1)
    return steps


def record_updates(setup: TrainingSetup, state: TrainState) -> dict[str, Computation]:
    """The computations of the directions, to be recorded as CUDA graphs."""
    return {
        direction: CudaGraphStep(partial(compute, setup, state, direction), record_cuda_graph)
        for direction in setup.processes.directions
    }


def update(
    setup: TrainingSetup,
    state: TrainState,
    batch: Batch,
    direction: str,
    rate: float,
    computation: Computation | None = None,
) -> DirectionStep:
    """One update of one direction; its recurrent state goes on."""
    encoder = state.encoder.direction(direction)
    peers = setup.processes.groups[direction]
    streams = len(batch.rows[direction]) * peers.world_size
    # drawn for all the streams, so that it does not matter which process reads which
    masks = [
        mask if mask is None else mask[peers.stream_slice(streams)]  # [B / world_size, P]
        for mask in encoder.draw_dropout_masks(streams, state.generators[direction])
    ]
    set_rate(state.optimisers[direction], rate)
    inputs = StepInputs(batch.inputs(direction), batch.targets(direction), masks, state.recurrent[direction])
    outcome = (computation or partial(compute, setup, state, direction))(inputs)
    state.recurrent[direction] = outcome.state if setup.config.train.carry_state else None
    figures = (outcome.loss, outcome.gradient_norm, outcome.masked)
    loss, norm, masked = torch.stack([figure.double() for figure in figures]).tolist()  # the one wait for a GPU
    return DirectionStep(loss, norm, int(masked))


def compute(setup: TrainingSetup, state: TrainState, direction: str, inputs: StepInputs) -> StepResult:
    """Loss, gradients, their norm bounded, Adam. Values stay on the device, so that it need not wait for the host.

    Where the loss or the norm is not finite, Adam changes nothing.
    """
    config = setup.config
    peers = setup.processes.groups[direction]
    with setup.autocast():
        output = state.encoder.direction(direction)(inputs.vectors, inputs.state, dropout_masks=inputs.masks)
        predictions = state.heads.direction(direction)(output.top)  # [B, T, E]
    own = cosine_loss(predictions, inputs.targets)
    everywhere = CosineLoss(*peers.all_reduce(own.total.detach(), own.counted, own.masked))
    # the mean over all the streams has the sum of these gradients
    own._replace(counted=everywhere.counted).mean.backward()
    peers.wait_for_gradients()
    norm = torch.nn.utils.clip_grad_norm_(
        parameters_of(state.encoder, state.heads, direction), config.optimiser.gradient_norm
    )
    optimiser = state.optimisers[direction]
    # read by Adam's fused step, as torch.amp's scaler has it
    optimiser.found_inf = (~torch.isfinite(norm + everywhere.mean)).float()  # type: ignore[attr-defined]
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return StepResult(everywhere.mean, norm, everywhere.masked, detached(output.state))


def require_finite(value: float, what: str, update: int) -> None:
    """Raise an `InputError` when a figure of an update, the same in all processes, is not finite."""
    if not math.isfinite(value):
        raise RaisedTogether(
            f"{what} is {value} at update {update}: start a new run with a lower schedule.base (by --init-from "
            "from this one's model, if you like), or check the vector tables for rows that are not finite"
        )


def detached(states: list[LSTMState]) -> list[LSTMState]:
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
