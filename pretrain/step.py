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
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch

from pretrain.cuda_graph import graphed
from pretrain.data.batches import Batch
from pretrain.distributed.processes import RaisedTogether
from pretrain.optimiser import clip_gradients, set_rate, values_of
from pretrain.output_layers import Loss
from pretrain.setup import TrainingSetup
from pretrain.train_state import TrainState


class DirectionStep(NamedTuple):
    """What one update did in one direction.

    loss: the mean over the counted targets.
    gradient_norm: before it was bounded.
    masked: the number of targets that the loss left out.
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
        self._setup = setup
        self._state = state
        self._gradient_norm = setup.config.optimiser.gradient_norm
        self._parameters = {name: state.parameters(name) for name in state.optimisers}
        directions = setup.data.directions
        # Parts that are updated behind the directions, with one bound each; one
        # direction and what it would share are one model.
        self._is_one_model = len(directions) == 1 and bool(state.shared_parts)
        self._models = (
            [list(state.optimisers)]
            if self._is_one_model
            else [[name] for name in state.shared_parts]
        )
        device = setup.execution.device
        self._groups = setup.processes.new_groups(directions, device)
        for direction, group in self._groups.items():
            group.all_reduce_gradients(self._parameters[direction])
        self._encoders: dict[str, Any] = {
            direction: state.encoder.direction(direction) for direction in directions
        }
        # a graph takes no gradients to a network that makes vectors
        if setup.input_network is None:
            streams = setup.data.streams // setup.processes.world_size
            size = setup.encoder.config.word_vector_size
            shape = (streams, setup.data.window, size)  # [B / processes, T, E]
            self._encoders = {
                direction: graphed(encoder, setup.execution, shape)
                for direction, encoder in self._encoders.items()
            }
        # a thread a direction, each with an equal share of the cores
        self._pool = None
        threads = torch.get_num_threads() // len(directions)
        has_cores = device.type == "cpu" and threads >= 1
        if side_by_side and has_cores and len(directions) > 1:
            self._pool = ThreadPoolExecutor(
                len(directions),
                "direction",
                initializer=partial(torch.set_num_threads, threads),
            )

    def __call__(self, batch: Batch, rate: float) -> dict[str, DirectionStep]:
        """One update of every direction at a learning rate.

        Where the loss or the norm of the gradient is not finite, a direction's weights
        stay as they are.
        """
        self._state.set_training(True)
        run: Any = map if self._pool is None else self._pool.map
        update = partial(self.update_direction, batch=batch, rate=rate)
        # the one wait for a GPU: all numbers of all directions come at once
        numbers = torch.stack(list(run(update, self._groups))).tolist()
        steps = {
            direction: DirectionStep(loss, norm, int(masked))
            for direction, (loss, norm, masked) in zip(
                self._groups, numbers, strict=True
            )
        }
        return self.update_shared(steps, rate)

    def update_direction(
        self, direction: str, batch: Batch, rate: float
    ) -> torch.Tensor:
        """One update of one direction: loss, gradients, their norm bounded, the step of
        the optimiser; its recurrent state goes on.

        Where the loss or the norm is not finite, no weight changes. Where it is one
        model with shared parts, its weights wait for `update_shared`.

        Returns:
            The numbers of its `DirectionStep`, float64 [3], which stay on the device,
            so that a GPU need not wait for the host.
        """
        state = self._state
        group = self._groups[direction]
        optimiser = state.optimisers[direction]
        # Masks are drawn for all the streams, so that it does not matter which
        # process reads which.
        data = self._setup.data
        share = self._setup.processes.stream_slice(data.streams)
        drawn = state.encoder.direction(direction).encoder.draw_dropout_masks(
            data.streams, data.window, state.generators[direction]
        )
        masks = [None if mask is None else mask[share] for mask in drawn]
        set_rate(optimiser, rate)
        with self._setup.execution.autocast():
            words = state.read(batch, direction)  # [B, T, E]
            output = self._encoders[direction](
                words, state.recurrent[direction], dropout_masks=masks
            )
            layer = state.output_layers.direction(direction)
            own: Loss = layer(output.layer_states[-1], batch.targets(direction))
        everywhere = Loss._make(
            group.all_reduce(own.total.detach(), own.counted, own.masked)
        )
        counted = everywhere.counted.clamp(min=1)
        # Divided by the targets of all processes: the sum of their gradients is then
        # that of the mean over all streams.
        (own.total / counted).backward()
        group.wait_for_gradients()
        loss = everywhere.total / counted
        norm = torch.zeros_like(loss)
        if not self._is_one_model:
            norm = torch.nn.utils.clip_grad_norm_(
                self._parameters[direction], self._gradient_norm
            )
            # a fused step reads it on the device and then changes nothing; the scaler
            # of torch.amp tells it the same way
            optimiser.found_inf = (~torch.isfinite(norm + loss)).float()  # type: ignore[attr-defined]
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        # gradients end with the window, and states are carried in float32
        if data.carry_state:
            state.recurrent[direction] = output.state.map(
                lambda tensor: tensor.detach().float()
            )
        return torch.stack([loss.double(), norm.double(), everywhere.masked.double()])

    def update_shared(
        self, steps: dict[str, DirectionStep], rate: float
    ) -> dict[str, DirectionStep]:
        """One update of each part that the directions share, from the sum of their
        gradients, and of a direction that is one model with them.

        All of them stay as they are where the loss or a norm is not finite.

        Returns:
            The steps, with the norm of a shared part where that is not finite, so that
            the run stops, or with that of the one model.
        """
        state = self._state
        # the directions are done: any group of all processes will do
        group = next(iter(self._groups.values()))
        for name in state.shared_parts:
            parameters = self._parameters[name]
            for parameter in parameters:
                # a cluster or row that no word of this window needs has no gradient
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                if parameter.grad.is_sparse:
                    parameter.grad = parameter.grad.coalesce()
            group.all_reduce_in_place([values_of(each) for each in parameters])
        for parts in self._models:
            together = chain.from_iterable(self._parameters[part] for part in parts)
            norm = clip_gradients(list(together), self._gradient_norm)
            if self._is_one_model or not norm.isfinite():
                steps = {
                    direction: step._replace(gradient_norm=norm.item())
                    for direction, step in steps.items()
                }
        finite = all(
            math.isfinite(step.loss + step.gradient_norm) for step in steps.values()
        )
        for part in chain.from_iterable(self._models):
            optimiser = state.optimisers[part]
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
        if not math.isfinite(step.loss + step.gradient_norm):
            raise RaisedTogether(
                f"the {direction} loss is {step.loss} at update {update}, the norm of "
                f"its gradient {step.gradient_norm}: start a new run with a lower "
                "schedule.base"
            )


def summary(recent: list[dict[str, DirectionStep]]) -> dict[str, float]:
    """Mean loss and gradient norm over some updates, for each direction and (the loss)
    over both.
    """
    values = {}
    for name in recent[0]:
        own = [steps[name] for steps in recent]
        values[f"{name}_loss"] = float(np.mean([step.loss for step in own]))
        norms = [step.gradient_norm for step in own]
        values[f"{name}_gradient_norm"] = float(np.mean(norms))
    # the first field of a line of the log
    return {
        "loss": float(np.mean([values[f"{name}_loss"] for name in recent[0]]))
    } | values
