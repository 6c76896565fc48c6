"""What does a run need to go on exactly where it stopped?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam

from elmoc.encoders.lstm import DIRECTIONS, BidirectionalEncoder
from elmoc.encoders.recurrence import LSTMState
from elmoc.heads import ContinuousHeads
from pretrain.config import OptimiserConfig
from pretrain.data.windows import Position

RecurrentState = list[LSTMState] | None


@dataclass
class TrainState:
    """Weights, optimiser, recurrent state, random state, data position, schedule, and the running totals."""

    encoder: BidirectionalEncoder
    heads: ContinuousHeads
    optimisers: dict[str, Adam]
    """One a direction: each is a model of its own."""
    generators: dict[str, torch.Generator]
    """One a direction: dropout masks are drawn from it, so that training one direction alone draws the same."""
    recurrent: dict[str, RecurrentState]
    position: Position = field(default_factory=Position)
    update: int = 0
    """Updates done."""
    updates: int = 0
    """Updates of the whole run: the schedule's u."""
    words: int = 0
    masked: int = 0
    """Targets without a direction so far, over all directions."""
    seconds: float = 0.0
    """Of training so far, evaluation included."""
    best_update: int | None = None
    best_cosine: float = float("-inf")

    def to_dict(self) -> dict[str, Any]:
        """Tensors and plain values, for `torch.save`."""
        return {
            "encoder": self.encoder.state_dict(),
            "heads": self.heads.state_dict(),
            "optimisers": {name: optimiser.state_dict() for name, optimiser in self.optimisers.items()},
            "generators": {name: generator.get_state() for name, generator in self.generators.items()},
            "recurrent": {
                name: None if states is None else [tuple(state) for state in states]
                for name, states in self.recurrent.items()
            },
            "position": asdict(self.position),
            "device": next(self.encoder.parameters()).device.type,
            **{name: getattr(self, name) for name in PLAIN},
        }

    def load_dict(self, values: dict[str, Any], own: slice = slice(None)) -> None:
        """Take over `to_dict`'s result: of the streams those that are `own`, of the directions those trained here."""
        device = next(self.encoder.parameters()).device
        self.encoder.load_state_dict(values["encoder"])
        self.heads.load_state_dict(values["heads"])
        for name, optimiser in self.optimisers.items():
            ours = [{key: group[key] for key in ("lr", "capturable")} for group in optimiser.param_groups]
            optimiser.load_state_dict(values["optimisers"][name])
            for group, here in zip(optimiser.param_groups, ours, strict=True):
                group.update(here)  # which depend on the device
        for name, generator in self.generators.items():
            if values["device"] == device.type:
                generator.set_state(values["generators"][name])
            else:  # the generators of another kind of device have other states: masks go on from a new seed
                generator.manual_seed(generator.initial_seed() + values["update"])
        self.recurrent = {
            name: None if states is None else [LSTMState(*(part[own].to(device) for part in state)) for state in states]
            for name, states in values["recurrent"].items()
            if name in self.recurrent
        }
        self.position = Position(**values["position"])
        for name in PLAIN:
            setattr(self, name, values[name])


PLAIN = ("update", "updates", "words", "masked", "seconds", "best_update", "best_cosine")


def parameters_of(encoder: BidirectionalEncoder, heads: ContinuousHeads, direction: str) -> list[Tensor]:
    """The trainable parameters of one direction: its encoder and its head."""
    return [*encoder.direction(direction).parameters(), *heads.direction(direction).parameters()]


def set_rate(optimiser: Adam, rate: float) -> None:
    """Set the learning rate of the next update."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def new_state(
    encoder: BidirectionalEncoder,
    heads: ContinuousHeads,
    config: OptimiserConfig,
    seed: int,
    device: torch.device,
    directions: Sequence[str] | None = None,
) -> TrainState:
    """The state before the first update; `directions` are those that are trained here (None: all that there are)."""
    on_gpu = device.type == "cuda"
    directions = encoder.directions if directions is None else directions
    encoder.to(device)
    heads.to(device)
    optimisers = {
        direction: Adam(
            parameters_of(encoder, heads, direction),
            lr=torch.zeros((), device=device) if on_gpu else 0.0,  # set before every update
            capturable=on_gpu,
            betas=(config.beta1, config.beta2),
            eps=config.epsilon,
            fused=True,
        )
        for direction in directions
    }
    return TrainState(
        encoder=encoder,
        heads=heads,
        optimisers=optimisers,
        generators={
            direction: torch.Generator(device).manual_seed(2 * seed + index)
            for index, direction in enumerate(DIRECTIONS)
            if direction in directions
        },
        recurrent=dict.fromkeys(directions),
    )
