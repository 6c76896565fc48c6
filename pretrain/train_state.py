"""The train state: what a run needs to go on exactly where it stopped."""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.optim import Optimizer

from elmoc.encoders import DIRECTIONS, EncoderState
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.errors import InputError
from pretrain.checkpoint import Checkpoint, check_tensors, flat
from pretrain.data.batches import Batch
from pretrain.data.windows import Position
from pretrain.input_layers import INPUT, InputNetwork
from pretrain.optimiser import OptimiserConfig, WeightAverage, new_adagrad, new_optimiser, optimiser_state
from pretrain.output_layers import SHARED, OutputLayers

PLAIN = ("update", "updates", "words", "masked", "seconds", "longest_evaluation", "best_update", "evaluated")
"""Fields that a checkpoint holds as they are."""


@dataclass
class TrainState:
    """Weights, optimiser, recurrent state, random state, data position, schedule, and the running totals."""

    encoder: BidirectionalEncoder
    output_layers: OutputLayers
    optimisers: dict[str, Optimizer]
    """One a direction: each is a model of its own; and one of each part that they share."""
    averages: dict[str, WeightAverage]
    """As many, where the weights are averaged at all."""
    generators: dict[str, torch.Generator]
    """One a direction: dropout masks are drawn from it, so that training one direction alone draws the same."""
    recurrent: dict[str, EncoderState | None]
    input_network: InputNetwork | None = None
    """The network that makes word vectors, if the run trains one; the directions share it."""
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
    longest_evaluation: float = 0.0
    """In seconds."""
    evaluated: int = 0
    """The update of the last evaluation."""
    best_update: int | None = None
    best_score: float = float("-inf")
    """Of the held-out metric that chooses the exported model."""

    def parameters(self, name: str) -> list[Tensor]:
        """The trainable parameters of one direction, its encoder and its own output layer, or of a shared part."""
        if name == SHARED:
            return list(self.output_layers.parameters())
        if name == INPUT:
            assert self.input_network is not None
            return list(self.input_network.parameters())
        own = [] if self.output_layers.is_shared else self.output_layers.direction(name).parameters()
        return [*self.encoder.direction(name).parameters(), *own]

    @property
    def shared_parts(self) -> list[str]:
        """The parts that the directions share: the network that makes word vectors, and the output layer, if any."""
        of_input = self.input_network is not None and self.input_network.has_weights
        return [INPUT] * of_input + [SHARED] * self.output_layers.is_shared

    def read(self, batch: Batch, direction: str) -> Tensor:
        """float32 [B, T, E]: the vectors of the words that a direction reads."""
        if self.input_network is None:
            return batch.inputs(direction)
        rows, places = batch.distinct_inputs(direction)
        return functional.embedding(places, self.input_network(rows))  # whose gradient knows no order of threads

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """The weights of what is trained here are their averages as long as this lasts, where there are any."""
        with ExitStack() as stack:
            for average in self.averages.values():
                stack.enter_context(average.in_place())
            yield

    def to_dict(self) -> dict[str, Any]:
        """What a `Checkpoint` has of it: tensors and plain values, for `torch.save`."""
        return {
            "encoder": self.encoder.weights(),
            "heads": self.output_layers.state_dict(),
            "input": self._input_weights(),
            "optimisers": {name: optimiser.state_dict() for name, optimiser in self.optimisers.items()},
            "averages": {name: average.tensors for name, average in self.averages.items()},
            "generators": {name: generator.get_state() for name, generator in self.generators.items()},
            "recurrent": {
                name: None if state is None else [tuple(layer) for layer in state.layers]
                for name, state in self.recurrent.items()
            },
            "position": asdict(self.position),
            "device": next(self.encoder.parameters()).device.type,
            "best_cosine": None if self.best_update is None else self.best_score,
            **{name: getattr(self, name) for name in PLAIN},
        }

    def load(self, checkpoint: Checkpoint, *, streams: int, carry_state: bool, own: slice = slice(None)) -> None:
        """Take over what a checkpoint has of the directions that are trained here.

        Args:
            streams, carry_state: of the whole run (see `TrainConfig`).
            own: the streams that are read here.

        Raises `InputError`, and changes nothing, where the checkpoint does not fit.
        """
        device = next(self.encoder.parameters()).device
        expected = self._expected(streams, begun=checkpoint.update > 0, carry_state=carry_state)
        if checkpoint.unlogged:
            updates = max(len(steps) if steps.ndim else 0 for steps in checkpoint.unlogged.values())
            steps = torch.empty(updates, 3, dtype=torch.float64, device="meta")
            expected["unlogged"] = dict.fromkeys(self.encoder.directions, steps)
        found = {
            "encoder": checkpoint.encoder,
            "heads": checkpoint.heads,
            "input": checkpoint.input,
            "optimisers": {name: checkpoint.optimisers.get(name, {}).get("state") for name in self.optimisers},
            "averages": {name: checkpoint.averages.get(name) for name in self.averages},
            "generators": {name: checkpoint.generators.get(name) for name in self.generators},
            "recurrent": {name: checkpoint.recurrent.get(name) for name in self.recurrent},
            "unlogged": checkpoint.unlogged,
        }
        if checkpoint.device != device.type:  # whose generators have other states: masks go on from a new seed
            del expected["generators"], found["generators"]
        tensors = dict(flat(found))
        check_tensors(tensors, dict(flat(expected)))
        for name, generator in self.generators.items():
            if "generators" in found:
                set_generator(generator, tensors[f"generators.{name}"], f"generators.{name}")
            else:
                generator.manual_seed(generator.initial_seed() + checkpoint.update)
        self.encoder.load_weights(checkpoint.encoder)
        self.output_layers.load_state_dict(checkpoint.heads)
        if self.input_network is not None:
            self.input_network.load_state_dict(checkpoint.input)
        for name, optimiser in self.optimisers.items():
            moments = {
                index: {part: tensors[f"optimisers.{name}.{index}.{part}"] for part in parts}
                for index, parts in expected["optimisers"].get(name, {}).items()
            }
            optimiser.load_state_dict(optimiser.state_dict() | {"state": moments})
        for name, average in self.averages.items():
            for tensor, value in zip(average.tensors, checkpoint.averages[name], strict=True):
                tensor.copy_(value)
        for name in self.recurrent:
            layers = checkpoint.recurrent[name]
            state = None if layers is None else EncoderState(tuple(layers))
            self.recurrent[name] = None if state is None else state.map(lambda tensor: tensor[own].to(device))
        self.position = checkpoint.position
        self.best_score = -math.inf if checkpoint.best_cosine is None else checkpoint.best_cosine
        for name in PLAIN:
            setattr(self, name, getattr(checkpoint, name))

    def _expected(self, streams: int, *, begun: bool, carry_state: bool) -> dict[str, Any]:
        """Tensors of the names, shapes and types that a checkpoint has, of a run that has `begun` its updates."""
        return {
            "encoder": self.encoder.weights(),
            "heads": self.output_layers.state_dict(),
            "input": self._input_weights(),
            "optimisers": {name: optimiser_state(each, begun=begun) for name, each in self.optimisers.items()},
            "averages": {name: average.tensors for name, average in self.averages.items()},
            "generators": {name: generator.get_state() for name, generator in self.generators.items()},
            "recurrent": {name: self._carried(name, streams) for name in self.recurrent if begun and carry_state},
        }

    def _input_weights(self) -> dict[str, Tensor]:
        return {} if self.input_network is None else self.input_network.state_dict()

    @torch.no_grad()
    def _carried(self, direction: str, streams: int) -> list[list[Tensor]]:
        """Tensors of the shapes of a direction's recurrent state."""
        encoder = self.encoder.direction(direction).eval()
        parameter = next(encoder.parameters())
        state = encoder(parameter.new_zeros(1, 1, self.encoder.config.word_vector_size)).state
        return [[tensor.float().expand(streams, *tensor.shape[1:]) for tensor in layer] for layer in state.layers]


def set_generator(generator: torch.Generator, state: Tensor, name: str) -> None:
    """Set the state of a random generator; an `InputError` with its `name` where it is none."""
    try:
        generator.set_state(state)
    except RuntimeError as error:
        raise InputError(f"{name} is not the state of a random generator ({error})") from None


def new_state(
    encoder: BidirectionalEncoder,
    output_layers: OutputLayers,
    config: OptimiserConfig,
    *,
    seed: int,
    device: torch.device,
    directions: Sequence[str] | None = None,
    input_network: InputNetwork | None = None,
) -> TrainState:
    """The state before the first update; `directions` are those that are trained here (None: all that there are)."""
    directions = encoder.directions if directions is None else directions
    state = TrainState(
        encoder=encoder.to(device),
        output_layers=output_layers.to(device),
        optimisers={},
        averages={},
        generators={
            direction: torch.Generator(device).manual_seed(2 * seed + index)
            for index, direction in enumerate(DIRECTIONS)
            if direction in directions
        },
        recurrent=dict.fromkeys(directions),
        input_network=None if input_network is None else input_network.to(device),
    )
    for name in [*directions, *state.shared_parts]:
        parameters = state.parameters(name)
        adagrad = output_layers.adagrad if name == SHARED else None
        state.optimisers[name] = (
            new_optimiser(parameters, config, device) if adagrad is None else new_adagrad(parameters, adagrad)
        )
        if config.average:
            state.averages[name] = WeightAverage(parameters, config.average)
    return state
