"""The train state: what a run needs to go on exactly where it stopped."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam

from elmoc.encoders import DIRECTIONS, EncoderState
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.settings import setting
from pretrain.data.windows import Position
from pretrain.output_layers import OutputLayers

PLAIN = ("update", "updates", "words", "masked", "seconds", "best_update")
"""Fields that a checkpoint holds as they are."""


@dataclass(frozen=True)
class OptimiserConfig:
    """Adam with a bound on the gradient norm of each direction (they are separate models)."""

    beta1: float = setting(0.9, least=0, below=1)
    beta2: float = setting(0.999, least=0, below=1)
    epsilon: float = setting(1e-6, above=0)
    gradient_norm: float = setting(1.0, above=0)


@dataclass
class TrainState:
    """Weights, optimiser, recurrent state, random state, data position, schedule, and the running totals."""

    encoder: BidirectionalEncoder
    output_layers: OutputLayers
    optimisers: dict[str, Adam]
    """One a direction: each is a model of its own."""
    generators: dict[str, torch.Generator]
    """One a direction: dropout masks are drawn from it, so that training one direction alone draws the same."""
    recurrent: dict[str, EncoderState | None]
    position: Position = field(default_factory=Position)
    update: int = 0
    """Updates done."""
    updates: int = 0
    """Updates of the whole run: the schedule's u."""
    words: int = 0
    masked: int = 0
    """Targets that the loss left out so far, over all directions."""
    seconds: float = 0.0
    """Of training so far, evaluation included."""
    best_update: int | None = None
    best_score: float = float("-inf")
    """Of the held-out metric that chooses the exported model."""

    def parameters(self, direction: str) -> list[Tensor]:
        """The trainable parameters of one direction: its encoder and its output layer."""
        return [*self.encoder.direction(direction).parameters(), *self.output_layers.direction(direction).parameters()]

    def to_dict(self) -> dict[str, Any]:
        """Tensors and plain values, for `torch.save`."""
        return {
            "encoder": self.encoder.weights(),
            "heads": self.output_layers.state_dict(),
            "optimisers": {name: optimiser.state_dict() for name, optimiser in self.optimisers.items()},
            "generators": {name: generator.get_state() for name, generator in self.generators.items()},
            "recurrent": {
                name: None if state is None else [tuple(layer) for layer in state.layers]
                for name, state in self.recurrent.items()
            },
            "position": self.position.to_dict(),
            "device": next(self.encoder.parameters()).device.type,
            "best_cosine": self.best_score,
            **{name: getattr(self, name) for name in PLAIN},
        }

    def load_dict(self, values: dict[str, Any], own: slice = slice(None)) -> None:
        """Take over `to_dict`'s result: of the streams those that are `own`, of the directions those trained here."""
        device = next(self.encoder.parameters()).device
        self.encoder.load_weights(values["encoder"])
        self.output_layers.load_state_dict(values["heads"])
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
        for name in self.recurrent:
            layers = values["recurrent"][name]
            state = None if layers is None else EncoderState(tuple(tuple(layer) for layer in layers))
            self.recurrent[name] = None if state is None else state.map(lambda tensor: tensor[own].to(device))
        self.position = Position.from_dict(values["position"])
        self.best_score = values["best_cosine"]
        for name in PLAIN:
            setattr(self, name, values[name])


def new_state(
    encoder: BidirectionalEncoder,
    output_layers: OutputLayers,
    config: OptimiserConfig,
    *,
    seed: int,
    device: torch.device,
    directions: Sequence[str] | None = None,
) -> TrainState:
    """The state before the first update; `directions` are those that are trained here (None: all that there are)."""
    on_gpu = device.type == "cuda"
    directions = encoder.directions if directions is None else directions
    state = TrainState(
        encoder=encoder.to(device),
        output_layers=output_layers.to(device),
        optimisers={},
        generators={
            direction: torch.Generator(device).manual_seed(2 * seed + index)
            for index, direction in enumerate(DIRECTIONS)
            if direction in directions
        },
        recurrent=dict.fromkeys(directions),
    )
    for direction in directions:
        state.optimisers[direction] = Adam(
            state.parameters(direction),
            lr=torch.zeros((), device=device) if on_gpu else 0.0,  # set before every update
            capturable=on_gpu,
            betas=(config.beta1, config.beta2),
            eps=config.epsilon,
            fused=True,
        )
    return state
