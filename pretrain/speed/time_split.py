"""Where does the time of an update go: forward, backward, optimiser?

One update is watched by hooks; training's own code runs in between.
"""

import time
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

from pretrain.data.loader import Batch
from pretrain.speed.contestants import Contestant
from pretrain.speed.timing import synchronise
from pretrain.step import update
from pretrain.train_state import parameters_of

PARTS = ("forward", "backward", "optimiser")


class Marks:
    """Moments of one direction's update; on a GPU those at which the work asked for before is done."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.moments: dict[str, Any] = {}

    def set(self, name: str) -> None:
        """It is now; a moment that was set before moves."""
        if self.device.type == "cuda":
            self.moments[name] = torch.cuda.Event(enable_timing=True)
            self.moments[name].record(torch.cuda.current_stream(self.device))
        else:
            self.moments[name] = time.perf_counter()

    def seconds(self, start: str, end: str) -> float:
        """From one moment to the other."""
        first, last = self.moments[start], self.moments[end]
        return first.elapsed_time(last) / 1000 if self.device.type == "cuda" else last - first


def shares(contestant: Contestant, batch: Batch) -> dict[str, float]:
    """The part of an update's time that each of `PARTS` takes, over all directions.

    forward: dropout masks, vectors of the batch, encoder, head and loss; backward: the gradients; optimiser: clipping
    their norm, Adam, and what is left. The gradient of the loss itself counts as forward.
    """
    device = contestant.setup.device

    def watched(direction: str) -> Marks:
        marks = Marks(device)
        with ExitStack() as hooks:
            for handle in watch(contestant, direction, marks):
                hooks.callback(handle.remove)
            marks.set("start")
            update(contestant.setup, contestant.state, batch, direction, contestant.rate)
            marks.set("end")
        return marks

    contestant.state.encoder.train()
    all_marks = contestant.runner.map(watched).values()
    synchronise(device)
    moments = ("start", "loss", "gradients", "end")
    seconds = [sum(marks.seconds(*pair) for marks in all_marks) for pair in zip(moments, moments[1:], strict=False)]
    return {part: value / sum(seconds) for part, value in zip(PARTS, seconds, strict=True)}


def watch(contestant: Contestant, direction: str, marks: Marks) -> list[Any]:
    """Hooks that set the moments `loss` and `gradients`; returns their handles."""

    def when_predicted(module: object, arguments: object, predictions: Tensor) -> None:
        predictions.register_hook(lambda gradient: marks.set("loss"))

    def when_accumulated(parameter: Tensor) -> None:
        marks.set("gradients")

    head = contestant.state.heads.direction(direction)
    parameters = parameters_of(contestant.state.encoder, contestant.state.heads, direction)
    return [
        head.register_forward_hook(when_predicted),
        *(parameter.register_post_accumulate_grad_hook(when_accumulated) for parameter in parameters),
    ]
