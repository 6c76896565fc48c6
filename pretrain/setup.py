"""The set-up of a run: everything that has to be opened, made and checked before the
first update.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from elmoc.corpus import BEGIN, END, Corpus
from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import (
    BidirectionalEncoder,
    EncoderConfig,
    direction_name,
)
from elmoc.errors import InputError
from elmoc.model_directory import ModelDirectory, OutputLayerRecord
from elmoc.word_vectors.sources import VectorSource
from elmoc.word_vectors.stored import StoredVectors
from elmoc.word_vectors.table import VectorTable
from elmoc.word_vectors.transform import VectorTransform
from pretrain.config import RunConfig
from pretrain.data.sources import TrainingData
from pretrain.data.windows import require_held_out
from pretrain.distributed.processes import Processes
from pretrain.execution import Execution, choose_execution
from pretrain.init_from import initialise_from, read_stored_vectors
from pretrain.input_layers import InputNetwork
from pretrain.optimiser import new_adagrad
from pretrain.output_layers import SHARED, OutputLayers
from pretrain.train_state import TrainState

# Seeds of first weights: a shared output layer has 2³¹ + seed, an input network 2³¹ − 1
# − seed, far from those of the directions (`seed_of`). PyTorch's generator on the CPU
# takes the last 32 bits of a seed alone.
SHARED_SEED = 2**31


@dataclass
class TrainingSetup:
    """The parts of a run, all of them checked.

    updates: of the whole run as the config has it.
    stored_vectors: the word vectors that the encoder reads, where they go with models
        (see `ModelDirectory`).
    input_network: makes word vectors, if the run trains one.
    started_from: the training record of the model that the run started from, if any.
    """

    config: RunConfig
    data: TrainingData
    encoder: BidirectionalEncoder
    output_layers: OutputLayers
    execution: Execution
    processes: Processes
    updates: int
    stored_vectors: Path | StoredVectors | None = None
    input_network: InputNetwork | None = None
    started_from: Mapping[str, Any] | None = None

    @property
    def how(self) -> str:
        """Where, how precisely and by which implementation the encoder runs."""
        here = self.execution
        encoder = self.encoder.direction(self.encoder.directions[0]).encoder
        implementation = encoder.implementation(here.device, here.precision)
        return f"on {here.device} in {here.precision}, by {implementation}"

    def training_record(self) -> dict[str, object]:
        """What a model directory says of how it was trained, apart from how far; no
        clocks: equal runs, equal files.
        """
        corpus = self.data.corpus
        train = self.config.train
        # a source that is left out has trained nothing
        tokens = {
            name: sum(each.tokens for each in corpus.train if each.source == name)
            for name in corpus.sources
            if name and self.config.data.sources.get(name) != 0
        }
        record = {
            **asdict(self.config.card),
            "corpus": os.path.abspath(corpus.path),
            "sources": corpus.record.sources,
            "corpus_tokens": corpus.train_tokens,
            "corpus_types": corpus.types,
            "tokens_by_source": tokens,
            "streams": train.streams,
            "window": train.window,
            "learning_rate": self.config.schedule.base,
            "precision": self.execution.precision,
            "units_of_a_word": corpus.record.settings.get("units_of_a_word"),
            "keep": corpus.record.settings.get("keep"),
            "started_from": self.started_from,
        }
        return {
            name: value for name, value in record.items() if value or name == "sources"
        }

    def new_state(self) -> TrainState:
        """The state before the first update."""
        directions = self.data.directions
        device = self.execution.device
        network = self.input_network
        state = TrainState(
            encoder=self.encoder.to(device),
            output_layers=self.output_layers.to(device),
            optimisers={},
            generators={
                name: torch.Generator(device).manual_seed(seed_of(name, self.data.seed))
                for name in directions
            },
            recurrent=dict.fromkeys(directions),
            input_network=None if network is None else network.to(device),
            updates=self.updates,
        )
        for name in (*directions, *state.shared_parts):
            state.optimisers[name] = self.config.optimiser.new(
                state.parameters(name), device
            )
        # Of a layer that the directions share alone.
        adagrad = self.output_layers.direction(directions[0]).adagrad
        if adagrad is not None:
            state.optimisers[SHARED] = new_adagrad(state.parameters(SHARED), **adagrad)
        return state

    def model_directory(self, training: dict[str, object]) -> ModelDirectory:
        """What is exported: the encoder and output layers as they are now."""
        inputs = self.data.inputs
        transform = inputs.transform
        word_vectors = inputs.source
        stored = self.stored_vectors
        if self.input_network is not None:
            stored = self.input_network.stored()
            transform = VectorTransform(boundary=stored.lookup([BEGIN, END]))
            word_vectors = VectorSource(
                stored.file_name, stored.fingerprint, stored.size, "none"
            )
        return ModelDirectory(
            encoder=self.encoder,
            output_layer=OutputLayerRecord(
                self.config.output_layer.record(
                    corpus=self.data.corpus, targets=self.data.targets
                ),
                dict(self.output_layers.state_dict()),
                self.data.targets.transform if self.data.reads_targets else None,
            ),
            transform=transform,
            word_vectors=word_vectors,
            training=training,
            stored_vectors=stored,
        )


def set_up(
    config: RunConfig,
    init_from: str | None = None,
    processes: Processes = Processes(),
    *,
    own_model: Path | None = None,
    started_from: Mapping[str, Any] | None = None,
) -> TrainingSetup:
    """Open and make everything that a run needs.

    Args:
        config: of the run.
        init_from: a model directory whose weights a new run starts from.
        processes: among which the work is divided; by default this one alone.
        own_model: the model directory that a resumed run has exported.
        started_from: the training record of the model that a resumed run started from.
    """
    train = config.train
    processes.require_divisible(streams=train.streams, device=train.device)
    execution = choose_execution(
        device=train.device,
        precision=train.precision,
        local_rank=processes.local_rank,
    )
    if train.threads:
        torch.set_num_threads(train.threads)
    data = open_data(config)
    # Where there is too little text, this says so.
    by_epochs = max(1, round(train.epochs * data.updates_per_epoch))
    encoder, output_layers, network = initial_modules(config, data)
    stored_vectors = None
    if init_from is not None:
        before = initialise_from(
            init_from,
            encoder,
            output_layers,
            config.output_layer.record(corpus=data.corpus, targets=data.targets),
            data=data,
            network=network,
        )
        started_from = before.training
        stored_vectors = before.stored_vectors
    if processes.is_rank0 and network is None:
        stored_vectors = read_stored_vectors(
            data.inputs.source, own_model, stored_vectors
        )
    return TrainingSetup(
        config,
        data,
        encoder,
        output_layers,
        execution,
        processes,
        updates=train.updates or by_epochs,
        stored_vectors=stored_vectors,
        input_network=network,
        started_from=started_from,
    )


def open_data(config: RunConfig) -> TrainingData:
    """The corpus and tables of a run, checked, and how it cuts them.

    Where no target vectors are read, the input table stands in the place of theirs,
    which need not be there.
    """
    if not config.data.corpus:
        raise InputError(
            "data.corpus is not set: name a corpus directory in the config or with "
            "--set data.corpus=DIR"
        )
    corpus = Corpus(config.data.corpus)
    inputs = config.input_layer.open_table(corpus, config.data.input_vectors)
    reads = config.output_layer.reads_target_vectors
    targets = VectorTable(corpus, config.data.target_vectors) if reads else inputs
    train = config.train
    require_held_out(corpus, train.window)
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
        carry_state=train.carry_state,
        reads_targets=reads,
        candidates=config.output_layer.candidates,
    )


def initial_modules(
    config: RunConfig, data: TrainingData
) -> tuple[BidirectionalEncoder, OutputLayers, InputNetwork | None]:
    """Modules with random weights; a direction gets the same whichever others are
    trained.

    Args:
        config: of the run.
        data: whose tables the modules read.

    Returns:
        The encoder, the output layers, and the network that makes word vectors, if any.
    """
    width = config.encoder.projection_size
    size = width if config.input_layer.shared else data.inputs.size
    encoder_config = EncoderConfig(config.encoder, size)
    new_layer = partial(
        config.output_layer.build,
        projection_size=width,
        corpus=data.corpus,
        targets=data.targets,
    )
    # without weights: each direction gets those of an encoder of its own
    with torch.device("meta"):
        encoder = BidirectionalEncoder(
            encoder_config,
            directions=data.directions,
            fast=config.train.recurrence == "fused",
        )
    layers = {}
    with torch.random.fork_rng(devices=[]):
        for direction in data.directions:
            torch.manual_seed(seed_of(direction, data.seed))
            alone = BidirectionalEncoder(encoder_config, directions=(direction,))
            if not config.output_layer.shared:
                layers[direction_name(direction)] = new_layer()
            encoder.direction(direction).load_state_dict(
                alone.direction(direction).state_dict(), assign=True
            )
        if config.output_layer.shared:
            torch.manual_seed(SHARED_SEED + data.seed)
            layers[SHARED] = new_layer()
        torch.manual_seed(SHARED_SEED - 1 - data.seed)
        network = config.input_layer.build(width, data.corpus)
    for layer in layers.values():
        layer.tie(network)
    return encoder, OutputLayers(layers), network


def seed_of(direction: str, seed: int) -> int:
    """The seed of a direction's first weights and dropout masks, from that of the run:
    one direction alone draws what it draws beside the other.
    """
    return 2 * seed + DIRECTIONS.index(direction)
