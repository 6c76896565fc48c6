"""The train step: one update of every direction.

Two directions share the cores of a CPU: the products of one time step are small, so
that a second core adds little to one direction, while two directions, each on its half
of the cores, keep all of them busy.
Letters: B streams, T time, E word-vector width, P projection.
"""

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pretrain.cuda_graph import graphed
from pretrain.data.batches import Batch
from pretrain.distributed.errors import RaisedTogether
from pretrain.optimiser import clip_gradients, set_rate, values_of
from pretrain.output_layers import Loss
from pretrain.setup import TrainingSetup
from pretrain.train_state import TrainState


class DirectionStep(NamedTuple):
    """What one update did in one direction; `masked` are the targets that the loss left
    out.
    """

    loss: float
    gradient_norm: float
    masked: int


class TrainStep:
    """Makes updates of every direction.

    Args:
        setup: of the run.
        state: weights, optimisers and recurrent state, which updates change.
        side_by_side: whether directions run at the same time, where a CPU has cores for
            it.
    """

    def __init__(
        self, setup: TrainingSetup, state: TrainState, *, side_by_side: bool = True
    ) -> None:
        self._state = state
        self._execution = setup.execution
        self._groups = setup.processes.new_groups(
            setup.data.directions, setup.execution.device
        )
        self._processes = setup.processes
        self._gradient_norm = setup.config.optimiser.gradient_norm
        self._carry_state = setup.config.train.carry_state
        threads = torch.get_num_threads() // len(self._groups)  # of each direction
        self._pool = None
        if (
            side_by_side
            and self._execution.device.type == "cpu"
            and len(self._groups) > 1
            and threads >= 1
        ):
            initializer = partial(torch.set_num_threads, threads)
            self._pool = ThreadPoolExecutor(
                len(self._groups), "direction", initializer=initializer
            )
        self._parameters = {name: state.parameters(name) for name in state.optimisers}
        for direction, group in self._groups.items():
            group.all_reduce_gradients(self._parameters[direction])
        self._encoders = {
            direction: graphed(state.encoder.direction(direction), setup)
            for direction in self._groups
        }
        self._output_layers = {
            direction: state.output_layers.direction(direction)
            for direction in self._groups
        }

    def __call__(self, batch: Batch, rate: float) -> dict[str, DirectionStep]:
        """One update of every direction at a learning rate.

        Where the loss or the norm of the gradient is not finite, a direction's weights
        stay as they are.
        """
        self._state.set_training(True)
        run: Any = map if self._pool is None else self._pool.map
        values = list(
            run(
                lambda direction: self.update_direction(direction, batch, rate),
                self._groups,
            )
        )
        numbers = torch.stack(values).tolist()  # the one wait for a GPU
        steps = {}
        for direction, (loss, norm, masked) in zip(self._groups, numbers, strict=True):
            steps[direction] = DirectionStep(loss, norm, int(masked))
        return self.update_shared(steps, rate)

    def update_direction(self, direction: str, batch: Batch, rate: float) -> Tensor:
        """One update of one direction: loss, gradients, their norm bounded, Adam; its
        recurrent state goes on.

        Returns the numbers of its `DirectionStep`, float64 [3], which stay on the
        device, so that it need not wait for the host. Where the loss or the norm is not
        finite, Adam changes nothing.
        """
        state = self._state
        group = self._groups[direction]
        optimiser = self._state.optimisers[direction]
        streams = len(batch.token_ids[direction]) * self._processes.world_size
        encoder = state.encoder.direction(direction).encoder
        # drawn for all the streams, so that it does not matter which process reads
        # which
        masks = [
            mask
            if mask is None
            else mask[self._processes.stream_slice(streams)]  # [B / world_size, P]
            for mask in encoder.draw_dropout_masks(streams, state.generators[direction])
        ]
        set_rate(optimiser, rate)
        with self._execution.autocast():
            words = state.read(batch, direction)  # [B, T, E]
            output = self._encoders[direction](
                words, state.recurrent[direction], dropout_masks=masks
            )
            own: Loss = self._output_layers[direction](
                output.layer_states[-1], batch.targets(direction)
            )
        everywhere = Loss(
            *group.all_reduce(own.total.detach(), own.counted, own.masked)
        )
        counted = everywhere.counted.clamp(min=1)
        (
            own.total / counted
        ).backward()  # the mean over all the streams has the sum of these gradients
        group.wait_for_gradients()
        norm = torch.nn.utils.clip_grad_norm_(
            self._parameters[direction], self._gradient_norm
        )
        loss = everywhere.total / counted
        # read by Adam's fused step, as torch.amp's scaler has it
        optimiser.found_inf = (~torch.isfinite(norm + loss)).float()  # type: ignore[attr-defined]
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        carried = output.state.map(
            lambda tensor: tensor.detach().float()
        )  # gradients end with the window
        state.recurrent[direction] = carried if self._carry_state else None
        return torch.stack(
            [value.double() for value in (loss, norm, everywhere.masked)]
        )

    def update_shared(
        self, steps: dict[str, DirectionStep], rate: float
    ) -> dict[str, DirectionStep]:
        """One update of each part that the directions share, from the sum of their
        gradients.

        All of them stay as they are where the loss or a norm is not finite. A norm of
        their own that is not finite is put into the steps, so that the run stops.
        """
        state = self._state
        group = next(iter(self._groups.values()))
        for name in state.shared_parts:
            parameters = self._parameters[name]
            for parameter in parameters:
                if (
                    parameter.grad is None
                ):  # of a part that no word of this window needed
                    parameter.grad = torch.zeros_like(parameter)
                if parameter.grad.is_sparse:
                    parameter.grad = parameter.grad.coalesce()
            group.all_reduce_in_place(
                [values_of(parameter) for parameter in parameters]
            )
            norm = clip_gradients(parameters, self._gradient_norm)
            if not norm.isfinite():
                steps = {
                    direction: step._replace(gradient_norm=norm.item())
                    for direction, step in steps.items()
                }
        finite = all(
            math.isfinite(step.loss + step.gradient_norm) for step in steps.values()
        )
        for name in state.shared_parts:
            optimiser = state.optimisers[name]
            if finite:
                set_rate(optimiser, rate)
                optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        return steps

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def require_finite(steps: Mapping[str, DirectionStep], update: int) -> None:
    """Raise an `InputError` when a value of an update, the same in all processes, is
    not finite.
    """
    for direction, step in steps.items():
        for what, value in (
            ("loss", step.loss),
            ("norm of the gradient", step.gradient_norm),
        ):
            if not math.isfinite(value):
                raise RaisedTogether(
                    f"the {direction} {what} is {value} at update {update}: start a new run with a lower schedule.base"
                )


def summary(recent: list[dict[str, DirectionStep]]) -> dict[str, float]:
    """Mean loss and gradient norm over some updates, for each direction and (the loss)
    over both.
    """
    values = {
        f"{direction}_{name}": float(
            np.mean([getattr(steps[direction], name) for steps in recent])
        )
        for direction in recent[0]
        for name in ("loss", "gradient_norm")
    }
    return {
        "loss": float(np.mean([values[f"{direction}_loss"] for direction in recent[0]]))
    } | values
