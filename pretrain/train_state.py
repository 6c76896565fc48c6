"""The train state: what a run needs to go on exactly where it stopped."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec
import torch
from torch import Tensor

from elmoc.encoders import EncoderState
from elmoc.encoders.bidirectional import BidirectionalEncoder
from pretrain.data.batches import Batch
from pretrain.data.windows import Position
from pretrain.input_layers import INPUT, InputNetwork
from pretrain.optimiser import Progress
from pretrain.output_layers import SHARED, OutputLayers

# The share of a limit of time that evaluations before the last may take, and that is
# kept for the last one.
EVALUATION_SHARE = 0.1


@dataclass(kw_only=True)
class Totals:
    """The running totals of a run, which a checkpoint holds as they are.

    update: updates done.
    updates: of the whole run.
    words: read so far in each direction.
    masked: targets that the loss left out, over all directions.
    seconds: of the run so far, evaluations after the first included.
    max_seconds: of the whole run by `--max-time` (0: without).
    tenths: whole tenths of the run at the last evaluation.
    evaluation_seconds: of the last evaluation with `--max-time` (0: without).
    best_update: of the evaluation whose model is exported.
    best_score: of that evaluation, by the metric that chooses it.
    """

    update: int = 0
    updates: int = 0
    words: int = 0
    masked: int = 0
    seconds: float = 0.0
    max_seconds: float = 0.0
    tenths: int = 0
    evaluation_seconds: float = 0.0
    best_update: int | None = None
    best_score: float = float("-inf")


@dataclass(kw_only=True)
class TrainState(Totals):
    """Weights, optimisers, recurrent state, random state, data position, schedule, and
    the running totals.

    optimisers: one a direction (each is a model of its own), and one of each part that
        the directions share.
    generators: one a direction: dropout masks are drawn from it, so that one direction
        alone draws the same.
    recurrent: the state of each direction before its next window; None is zero state.
    input_network: makes word vectors, if the run trains one; the directions share it.
    position: of the next window.
    """

    encoder: BidirectionalEncoder
    output_layers: OutputLayers
    optimisers: dict[str, torch.optim.Optimizer]
    generators: dict[str, torch.Generator]
    recurrent: dict[str, EncoderState | None]
    input_network: InputNetwork | None = None
    position: Position = field(default_factory=Position)

    @property
    def progress(self) -> Progress:
        """How far the run is; with `--max-time` there is time for the evaluation at the
        end.
        """
        if self.max_seconds:
            # Where evaluations are slow, the last one ends after the time: short runs
            # would else have no time to train.
            kept = min(self.evaluation_seconds, EVALUATION_SHARE * self.max_seconds)
            return Progress(self.seconds, self.max_seconds - kept)
        return Progress(self.update, self.updates)

    def parameters(self, name: str) -> list[Tensor]:
        """The trainable parameters of one direction, its encoder and its own output
        layer, or of a shared part.
        """
        if name == SHARED:
            return list(self.output_layers.parameters())
        if name == INPUT:
            assert self.input_network is not None
            return [
                each for each in self.input_network.parameters() if each.requires_grad
            ]
        parameters: list[Tensor] = list(self.encoder.direction(name).parameters())
        if SHARED not in self.output_layers:
            parameters += self.output_layers.direction(name).parameters()
        return parameters

    @property
    def shared_parts(self) -> list[str]:
        """The parts that the directions share: the network that makes word vectors, and
        the output layer, if any.
        """
        shared = {
            INPUT: self.input_network is not None,
            SHARED: SHARED in self.output_layers,
        }
        return [name for name, is_there in shared.items() if is_there]

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
        # by `embedding`: the gradient of indexing depends on the order of threads
        return torch.nn.functional.embedding(
            places, self.input_network(rows, self.generators[direction])
        )

    def to_dict(self, gather: Callable[[Tensor], Tensor]) -> dict[str, Any]:
        """The state as a checkpoint holds it, in tensors and plain values.

        `gather` joins the rows [B / processes, …] of the recurrent state of every
        process. The result:

        encoder: weights by their names in model files.
        heads: weights of the output layers.
        input: weights of the input network; empty without one.
        optimisers: the state of each optimiser, by direction or shared part.
        generators: the state of each generator, by direction.
        recurrent: of each direction the tensors of each layer; None is zero state.
        position: of the next window: epoch, window, and the number of its group as
            `shard`.
        device: the type of device that the generators are of.

        Beside them are the fields of `Totals`.
        """
        network = self.input_network
        return {each.name: getattr(self, each.name) for each in fields(Totals)} | {
            "encoder": self.encoder.weights(),
            "heads": self.output_layers.state_dict(),
            "input": {} if network is None else network.state_dict(),
            "optimisers": {
                name: each.state_dict() for name, each in self.optimisers.items()
            },
            "generators": {
                name: each.get_state() for name, each in self.generators.items()
            },
            "recurrent": {
                name: None if each is None else list(each.map(gather).layers)
                for name, each in self.recurrent.items()
            },
            "position": {
                "epoch": self.position.epoch,
                "shard": self.position.group,
                "window": self.position.window,
            },
            "device": next(self.encoder.parameters()).device.type,
        }

    def load(self, values: Mapping[str, Any], *, own: slice = slice(None)) -> None:
        """Take over what a checkpoint has.

        Args:
            values: as `to_dict` gives them.
            own: the streams that this process trains.

        Raises:
            Exception: of any kind, where the values are not those of such a state; the
                caller says of which file they are.
        """
        vars(self).update(vars(msgspec.convert(dict(values), Totals)))
        device = next(self.encoder.parameters()).device
        self.encoder.load_weights(values["encoder"])
        self.output_layers.load_state_dict(values["heads"])
        if self.input_network is not None:
            self.input_network.load_state_dict(values["input"])
        for name, optimiser in self.optimisers.items():
            # settings of the optimiser are the config's, its moments the checkpoint's
            optimiser.load_state_dict(
                optimiser.state_dict() | {"state": values["optimisers"][name]["state"]}
            )
        for name, generator in self.generators.items():
            if values["device"] == device.type:
                generator.set_state(values["generators"][name])
            else:
                # generators of another kind of device have other states: masks go on
                # from a new seed, another one than at the beginning
                generator.manual_seed(generator.initial_seed() + self.update)
        for name in self.recurrent:
            layers = values["recurrent"][name]
            if layers is not None:
                self.recurrent[name] = EncoderState(tuple(layers)).map(
                    lambda all_: all_[own].to(device)
                )
        place = values["position"]
        self.position = Position(place["epoch"], place["shard"], place["window"])
