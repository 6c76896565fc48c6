"""The train state: what a run needs to go on exactly where it stopped."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.optim import Optimizer

from elmoc.encoders import EncoderState
from elmoc.encoders.bidirectional import BidirectionalEncoder
from pretrain.data.batches import Batch
from pretrain.data.windows import Position
from pretrain.input_layers import INPUT, InputNetwork
from pretrain.optimiser import Progress
from pretrain.output_layers import SHARED, OutputLayers

# fields that a checkpoint holds as they are
PLAIN = (
    *("update", "updates", "words", "masked", "seconds", "max_seconds", "tenths"),
    *("evaluation_seconds", "evaluation_words", "best_update", "best_score"),
)


@dataclass
class TrainState:
    """Weights, optimiser, recurrent state, random state, data position, schedule, and
    the running totals.

    optimisers: one a direction (each is a model of its own), and one of each part that
    the directions share.
    generators: one a direction: dropout masks are drawn from it, so that one direction
    alone draws the same.
    input_network: makes word vectors, if the run trains one; the directions share it.
    update, updates: updates done, and of the whole run.
    words, masked: words read so far in each direction; targets that the loss left out,
    over all directions.
    seconds, max_seconds: of the run so far, evaluations included, and of the whole run
    by `--max-time` (0: without).
    tenths: whole tenths of the run at the last evaluation.
    evaluation_seconds, evaluation_words: of one evaluation with `--max-time`, once
    measured (0: not yet).
    best_update, best_score: of the evaluation whose model is exported, by the metric
    that chooses it.
    """

    encoder: BidirectionalEncoder
    output_layers: OutputLayers
    optimisers: dict[str, Optimizer]
    generators: dict[str, torch.Generator]
    recurrent: dict[str, EncoderState | None]
    input_network: InputNetwork | None = None
    position: Position = field(default_factory=Position)
    update: int = 0
    updates: int = 0
    words: int = 0
    masked: int = 0
    seconds: float = 0.0
    max_seconds: float = 0.0
    tenths: int = 0
    evaluation_seconds: float = 0.0
    evaluation_words: int = 0
    best_update: int | None = None
    best_score: float = float("-inf")

    @property
    def progress(self) -> Progress:
        """How far the run is; with `--max-time` there is time for the evaluation at the
        end.
        """
        if self.max_seconds:
            return Progress(
                self.seconds, max(1e-9, self.max_seconds - self.evaluation_seconds)
            )
        return Progress(self.update, self.updates)

    def parameters(self, name: str) -> list[Tensor]:
        """The trainable parameters of one direction, its encoder and its own output
        layer, or of a shared part.
        """
        if name == SHARED:
            return list(self.output_layers.parameters())
        if name == INPUT:
            assert self.input_network is not None
            return list(self.input_network.parameters())
        own = (
            []
            if self.output_layers.is_shared
            else self.output_layers.direction(name).parameters()
        )
        return [*self.encoder.direction(name).parameters(), *own]

    @property
    def shared_parts(self) -> list[str]:
        """The parts that the directions share: the network that makes word vectors, and
        the output layer, if any.
        """
        # a network whose weights are tied has none of its own, and is no such part
        of_input = self.input_network is not None and bool(
            list(self.input_network.parameters())
        )
        return [INPUT] * of_input + [SHARED] * self.output_layers.is_shared

    def set_training(self, training: bool) -> None:
        """Put the modules into the mode of training or of evaluation."""
        for module in (self.encoder, self.output_layers, self.input_network):
            if module is not None:
                module.train(training)

    def read(self, batch: Batch, direction: str) -> Tensor:
        """float32 [B, T, E]: the vectors of the words that a direction reads."""
        if self.input_network is None:
            return batch.inputs(direction)
        rows, places = batch.distinct_inputs(direction)
        return functional.embedding(
            places, self.input_network(rows)
        )  # whose gradient knows no order of threads

    def to_dict(self) -> dict[str, Any]:
        """What a checkpoint has of it: tensors and plain values."""
        return {
            "encoder": self.encoder.weights(),
            "heads": self.output_layers.state_dict(),
            "input": {}
            if self.input_network is None
            else self.input_network.state_dict(),
            "optimisers": {
                name: optimiser.state_dict()
                for name, optimiser in self.optimisers.items()
            },
            "generators": {
                name: generator.get_state()
                for name, generator in self.generators.items()
            },
            "recurrent": {
                name: None
                if state is None
                else [tuple(layer) for layer in state.layers]
                for name, state in self.recurrent.items()
            },
            "position": asdict(self.position),
            "device": next(self.encoder.parameters()).device.type,
            **{name: getattr(self, name) for name in PLAIN},
        }

    def load(self, values: Mapping[str, Any], *, own: slice = slice(None)) -> None:
        """Take over what a checkpoint has of the directions that are trained here, and
        of the streams `own`.
        """
        device = next(self.encoder.parameters()).device
        self.encoder.load_weights(values["encoder"])
        self.output_layers.load_state_dict(values["heads"])
        if self.input_network is not None:
            self.input_network.load_state_dict(values["input"])
        for name, optimiser in self.optimisers.items():
            optimiser.load_state_dict(
                optimiser.state_dict() | {"state": values["optimisers"][name]["state"]}
            )
        for name, generator in self.generators.items():
            if values["device"] == device.type:
                generator.set_state(values["generators"][name])
            else:  # whose generators have other states: masks go on from a new seed
                generator.manual_seed(generator.initial_seed() + values["update"])
        for name in self.recurrent:
            layers = values["recurrent"][name]
            state = None if layers is None else EncoderState(tuple(layers))
            self.recurrent[name] = (
                None
                if state is None
                else state.map(lambda tensor: tensor[own].to(device))
            )
        self.position = Position(**values["position"])
        for name in PLAIN:
            setattr(self, name, values[name])
