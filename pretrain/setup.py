"""The set-up of a run: everything that has to be opened and checked before the first update."""

import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from elmoc.corpus import BEGIN, END
from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.errors import InputError
from elmoc.model_directory import ModelDirectory, OutputLayerRecord
from elmoc.word_vectors.opening import read_stored
from elmoc.word_vectors.sources import VectorSource, check_vectors
from elmoc.word_vectors.stored import StoredVectors
from elmoc.word_vectors.transform import VectorTransform
from pretrain.config import MOST_UPDATES, RunConfig
from pretrain.data.sources import TrainingData, open_sources
from pretrain.distributed.processes import Processes
from pretrain.execution.device import Execution, choose_execution
from pretrain.init_from import initialise_from
from pretrain.input_layers import InputNetwork
from pretrain.output_layers import SHARED, OutputLayer, OutputLayers, Scorer
from pretrain.train_state import TrainState, new_state

SHARED_SEED = 2**31
"""Seeds of first weights: a shared output layer has 2³¹ + seed, an input network 2³¹ − 1 − seed.

The directions have 2 · seed and 2 · seed + 1. PyTorch's generator on the CPU takes the last 32 bits of a seed alone."""


@dataclass
class TrainingSetup:
    """The parts of a run, all of them checked."""

    config: RunConfig
    data: TrainingData
    encoder: BidirectionalEncoder
    output_layers: OutputLayers
    execution: Execution
    processes: Processes
    stored_vectors: Path | StoredVectors | None = None
    """The word vectors that the encoder reads, where they go with models (see `ModelDirectory`)."""
    input_network: InputNetwork | None = None
    """The network that makes word vectors, if the run trains one."""
    started_from: dict[str, Any] | None = None
    """The training record of the model that the run started from, where it did."""

    @property
    def updates(self) -> int:
        """Updates of the whole run as the config has it."""
        train = self.config.train
        updates = train.updates or max(1, round(train.epochs * self.data.updates_per_epoch))
        if updates > MOST_UPDATES:
            raise InputError(
                f"train.epochs={train.epochs:g} are {updates:,} updates, {MOST_UPDATES:,} are the most: use fewer"
            )
        return updates

    @property
    def parameters(self) -> int:
        """Trainable parameters, of all directions."""
        return sum(parameter.numel() for module in self.parts.values() for parameter in module.parameters())

    @property
    def parts(self) -> dict[str, nn.Module]:
        """What is trained, of all directions."""
        network = self.input_network
        of_input = {network.title: network} if network is not None and network.has_weights else {}
        return {**of_input, "encoder": self.encoder, "output layer": self.output_layers}

    @property
    def implementation(self) -> str:
        """What the encoder runs by here, in words."""
        execution = self.execution
        return self.encoder.config.sizes.implementation(
            fast=execution.fast, device=execution.device, dtype=execution.dtype
        )

    def summary(self, updates: int | None) -> str:
        """The first line that a run prints; `updates` is its length, where that is known already."""
        length = "as many updates as --max-time allows" if updates is None else f"{updates:,} updates"
        processes = f", {self.processes.world_size} processes" if self.processes.world_size > 1 else ""
        return (
            f"{self.data.corpus.train_tokens:,} training tokens, {length}, "
            f"{self.data.updates_per_epoch:,} an epoch, on {self.execution.device} in {self.execution.precision}, "
            f"by {self.implementation}{processes}"
        )

    @property
    def arithmetic(self) -> dict[str, str | bool]:
        """How this process computes: all processes of a run do it alike, and may do it otherwise when it is resumed."""
        train = self.config.train
        return {
            "train.device": self.execution.device.type,
            "train.precision": self.execution.precision,
            "train.parallel": train.parallel,
            "train.recurrence": train.recurrence,
            "train.recompute": train.recompute,
        }

    @property
    def card(self) -> dict[str, str]:
        """What the model card is to say that nothing else knows."""
        return {name: text for name, text in asdict(self.config.card).items() if text}

    def training_record(self) -> dict[str, object]:
        """What a model directory says of how it was trained, apart from how far; no clocks: equal runs, equal files."""
        corpus, train = self.data.corpus, self.config.train
        before = {} if self.started_from is None else {"started_from": self.started_from}
        tokens = {
            source: sum(shard.tokens for shard in corpus.train if shard.source == source)
            for source in corpus.sources
            if source and self.config.data.sources.get(source) != 0
        }
        return (
            self.card
            | {
                "corpus": os.path.abspath(corpus.path),
                "sources": corpus.record.sources,
                "corpus_tokens": corpus.train_tokens,
                "corpus_types": corpus.types,
                **({"tokens_by_source": tokens} if tokens else {}),
                "streams": train.streams,
                "window": train.window,
                "learning_rate": self.config.schedule.base,
                "precision": self.execution.precision,
            }
            | ({"units_of_a_word": corpus.record.settings["units_of_a_word"]} if corpus.record.subwords else {})
            | before
        )

    def new_state(self) -> TrainState:
        """The state before the first update, of the directions that this process trains."""
        return new_state(
            self.encoder,
            self.output_layers,
            self.config.optimiser,
            seed=self.config.train.seed,
            device=self.execution.device,
            directions=self.processes.directions,
            input_network=self.input_network,
        )

    def scorer(self) -> Scorer:
        """What scores held-out predictions."""
        return self.config.output_layer.scorer(
            corpus=self.data.corpus,
            targets=self.data.targets,
            candidates=self.config.evaluation.candidates,
            device=self.execution.device,
        )

    def model_directory(self, training: dict[str, object]) -> ModelDirectory:
        """What is exported: the encoder and output layers as they are now."""
        transform, word_vectors, stored = self.data.inputs.transform, self.data.inputs.source, self.stored_vectors
        if self.input_network is not None:
            stored = self.input_network.stored()
            transform = VectorTransform(boundary=stored.lookup([BEGIN, END]))
            word_vectors = VectorSource(stored.file_name, stored.fingerprint, stored.size, "none")
        return ModelDirectory(
            encoder=self.encoder,
            output_layer=OutputLayerRecord(
                self.config.output_layer.record(corpus=self.data.corpus, targets=self.data.targets),
                dict(self.output_layers.state_dict()),
                self.data.targets.transform if self.data.reads_targets else None,
            ),
            transform=transform,
            word_vectors=word_vectors,
            training=training,
            stored_vectors=stored,
        )


def open_setup(config: RunConfig, processes: Processes | None = None) -> TrainingSetup:
    """Open and check everything that a run needs; its modules have sizes, and no weights yet.

    Args:
        config: of the run.
        processes: among which the work is divided; None is this process alone.
    """
    train = config.train
    processes = processes or Processes()
    processes.assign_directions(train)
    execution = choose_execution(
        device=train.device,
        precision=train.precision,
        fast=train.recurrence == "fused",
        local_rank=processes.local_rank,
    )
    shared = [each.kind for each in (config.input_layer, config.output_layer) if each.shared]
    if shared and train.parallel == "directions" and processes.world_size > 1:
        raise InputError(
            f'train.parallel="directions" is for directions that share nothing, and both share {" and ".join(shared)}: '
            "leave it out"
        )
    if train.cuda_graph and (shared or not config.output_layer.has_fixed_sizes):
        raise InputError(
            "train.cuda_graph needs updates that are all alike, and those with "
            f"{' and '.join(shared) or config.output_layer.kind} are not: leave it out"
        )
    if train.cuda_graph and (execution.device.type != "cuda" or processes.world_size > 1):
        raise InputError(
            f"train.cuda_graph is for one process on a GPU, and this is {processes.world_size} on "
            f"{execution.device.type}: leave it out"
        )
    if train.threads:
        torch.set_num_threads(train.threads)
    data = open_data(config)
    encoder_config = EncoderConfig(config.encoder, input_size(config, data))
    with torch.device("meta"):  # without weights, so that modules of any size can be counted
        encoder = BidirectionalEncoder(encoder_config, directions=train.directions)
        names = [SHARED] if config.output_layer.shared else train.directions
        output_layers = OutputLayers({name: output_layer_of(config, data) for name in names})
        input_network = config.input_layer.build(config.encoder.projection_size, data.inputs)
    setup = TrainingSetup(config, data, encoder, output_layers, execution, processes, input_network=input_network)
    tie(setup)
    data.updates_per_epoch, setup.updates  # noqa: B018 (too little text, or too long a run, is found out now)
    return setup


def set_up(config: RunConfig, init_from: str | None = None, processes: Processes | None = None) -> TrainingSetup:
    """Open everything a run needs, and make its weights: see `open_setup` and `make_weights`."""
    setup = open_setup(config, processes)
    make_weights(setup, init_from)
    return setup


def make_weights(setup: TrainingSetup, init_from: str | None = None) -> None:
    """Give the modules of a setup weights.

    Args:
        setup: as `open_setup` leaves it, with modules on the `meta` device.
        init_from: names a model directory whose weights it goes on from.
    """
    config, data, execution, processes = setup.config, setup.data, setup.execution, setup.processes
    train = config.train
    setup.encoder, setup.output_layers = initial_modules(config, data, fast=execution.fast)
    if setup.input_network is not None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SHARED_SEED - 1 - data.seed)
            setup.input_network = config.input_layer.build(config.encoder.projection_size, data.inputs)
    tie(setup)
    for direction in train.directions:
        setup.encoder.direction(direction).encoder.recompute = train.recompute
    if init_from is not None:
        record = OutputLayerRecord(config.output_layer.record(corpus=data.corpus, targets=data.targets), None)
        before = initialise_from(
            init_from,
            setup.encoder,
            setup.output_layers,
            record,
            inputs=data.inputs,
            targets=data.targets if data.reads_targets else None,
            input_network=setup.input_network,
        )
        setup.started_from = before.training
        setup.stored_vectors = before.stored_vectors if setup.input_network is None else None
    if processes.is_rank0 and setup.input_network is None:
        setup.stored_vectors = read_stored_vectors(setup)


def tie(setup: TrainingSetup) -> None:
    """Have the input network read the vectors of the output layer, where these are tied."""
    rows = setup.output_layers.tied_rows
    if rows is not None:
        if setup.input_network is None:
            raise InputError("output_layer.tied needs an input layer that is trained: choose input_layer.kind=subwords")
        setup.input_network.tie(rows)


def read_stored_vectors(setup: TrainingSetup) -> StoredVectors | None:
    """The stored vectors that the table of inputs was made from, read now: they may be gone when a model is exported.

    None where it was made from others. Of one that cannot be found, or has changed, a warning is printed.
    """
    source = setup.data.inputs.source
    if not source.origin.endswith(".safetensors"):
        return None
    copy = [setup.stored_vectors] if isinstance(setup.stored_vectors, Path) else []
    for file in [*copy, Path(source.origin)]:
        try:
            stored: StoredVectors = read_stored(file)
            check_vectors(stored, source)
        except InputError as error:
            problem = error
        else:
            return stored
    print(
        f"warning: models of this run will not hold their word vectors ({problem}): who uses "
        "them has to name these with --vectors",
        file=sys.stderr,
    )
    return None


def open_data(config: RunConfig) -> TrainingData:
    """The corpus and tables of a run, and how it cuts them."""
    train = config.train
    reads_targets = config.output_layer.reads_target_vectors
    corpus, inputs, targets = open_sources(
        config.data, config.input_layer, window=train.window, reads_targets=reads_targets
    )
    return TrainingData(
        corpus=corpus,
        inputs=inputs,
        targets=targets,
        directions=train.directions,
        streams=train.streams,
        window=train.window,
        mix_shards=train.mix_shards,
        seed=train.seed,
        weights=config.data.sources,
        order=train.order,
        reads_targets=reads_targets,
        candidates=config.output_layer.candidates,
        fixed_sizes=train.cuda_graph,
    )


def initial_modules(config: RunConfig, data: TrainingData, *, fast: bool) -> tuple[BidirectionalEncoder, OutputLayers]:
    """Encoder and output layers with random weights, those of a direction the same whichever others are trained."""
    encoder_config = EncoderConfig(config.encoder, input_size(config, data))
    with torch.device("meta"):  # without weights of their own
        encoder = BidirectionalEncoder(encoder_config, directions=data.directions, fast=fast)
    layers = {}
    for index, direction in enumerate(DIRECTIONS):
        if direction in data.directions:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(2 * data.seed + index)
                alone = BidirectionalEncoder(encoder_config, directions=(direction,))
                if not config.output_layer.shared:
                    layers[direction] = output_layer_of(config, data)
            encoder.direction(direction).load_state_dict(alone.direction(direction).state_dict(), assign=True)
    if config.output_layer.shared:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SHARED_SEED + data.seed)
            layers[SHARED] = output_layer_of(config, data)
    return encoder, OutputLayers(layers)


def input_size(config: RunConfig, data: TrainingData) -> int:
    """The width of the vectors that the encoder reads."""
    return config.encoder.projection_size if config.input_layer.shared else data.inputs.size


def output_layer_of(config: RunConfig, data: TrainingData) -> OutputLayer:
    """An output layer with random weights."""
    return config.output_layer.build(
        projection_size=config.encoder.projection_size, corpus=data.corpus, targets=data.targets
    )
