"""The set-up of a run: everything that has to be opened, made and checked before the
first update.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from elmoc.corpus import BEGIN, END, Corpus
from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
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
from pretrain.optimiser import new_adagrad, new_optimiser
from pretrain.output_layers import SHARED, OutputLayers
from pretrain.train_state import TrainState

# Seeds of first weights: a shared output layer has 2³¹ + seed, an input network 2³¹ − 1
# − seed, the directions 2 · seed and 2 · seed + 1. PyTorch's generator on the CPU takes
# the last 32 bits of a seed alone.
SHARED_SEED = 2**31


@dataclass
class TrainingSetup:
    """The parts of a run, all of them checked.

    updates: of the whole run as the config has it.
    stored_vectors: the word vectors that the encoder reads, where they go with models
    (see `ModelDirectory`).
    input_network: makes word vectors, if the run trains one.
    started_from: the training record of the model that the run started from, where it
    did.
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
    def implementation(self) -> str:
        """What the encoder runs by here, in words."""
        encoder = self.encoder.direction(self.encoder.directions[0]).encoder
        return encoder.implementation(self.execution.device, self.execution.precision)

    @property
    def output_record(self) -> dict[str, Any]:
        """What tells the output layers apart from others, for model directories."""
        return self.config.output_layer.record(
            corpus=self.data.corpus, targets=self.data.targets
        )

    def training_record(self) -> dict[str, object]:
        """What a model directory says of how it was trained, apart from how far; no
        clocks: equal runs, equal files.
        """
        corpus = self.data.corpus
        train = self.config.train
        weights = self.config.data.sources
        record = {
            **asdict(self.config.card),
            "corpus": os.path.abspath(corpus.path),
            "sources": corpus.record.sources,
            "corpus_tokens": corpus.train_tokens,
            "corpus_types": corpus.types,
            "tokens_by_source": {
                source: sum(
                    shard.tokens for shard in corpus.train if shard.source == source
                )
                for source in corpus.sources
                if source and weights.get(source) != 0
            },
            "streams": train.streams,
            "window": train.window,
            "learning_rate": self.config.schedule.base,
            "precision": self.execution.precision,
            "units_of_a_word": corpus.record.settings.get("units_of_a_word"),
            "started_from": self.started_from,
        }
        return {
            name: value for name, value in record.items() if value or name == "sources"
        }

    def new_state(self) -> TrainState:
        """The state before the first update."""
        directions = self.data.directions
        device = self.execution.device
        config = self.config.optimiser
        seed = self.config.train.seed
        state = TrainState(
            encoder=self.encoder.to(device),
            output_layers=self.output_layers.to(device),
            optimisers={},
            generators={
                direction: torch.Generator(device).manual_seed(
                    2 * seed + DIRECTIONS.index(direction)
                )
                for direction in directions
            },
            recurrent=dict.fromkeys(directions),
            input_network=None
            if self.input_network is None
            else self.input_network.to(device),
            updates=self.updates,
        )
        for name in [*directions, *state.shared_parts]:
            parameters = state.parameters(name)
            adagrad = (
                self.output_layers.direction(SHARED).adagrad if name == SHARED else None
            )
            state.optimisers[name] = (
                new_optimiser(parameters, config, device)
                if adagrad is None
                else new_adagrad(parameters, **adagrad)
            )
        return state

    def model_directory(self, training: dict[str, object]) -> ModelDirectory:
        """What is exported: the encoder and output layers as they are now."""
        transform = self.data.inputs.transform
        word_vectors = self.data.inputs.source
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
                self.output_record,
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
    processes: Processes | None = None,
    *,
    own_model: Path | None = None,
    started_from: Mapping[str, Any] | None = None,
) -> TrainingSetup:
    """Open and make everything that a run needs.

    Args:
        config: of the run.
        init_from: a model directory whose weights a new run starts from.
        processes: among which the work is divided; None is this process alone.
        own_model: the model directory that a resumed run has exported.
        started_from: the training record of the model that a resumed run started from.
    """
    train = config.train
    processes = processes or Processes()
    processes.require_divisible(streams=train.streams, device=train.device)
    execution = choose_execution(
        device=train.device,
        precision=train.precision,
        fast=train.recurrence == "fused",
        local_rank=processes.local_rank,
    )
    if train.threads:
        torch.set_num_threads(train.threads)
    data = open_data(config)
    # Where there is too little text, this says so.
    by_epochs = max(1, round(train.epochs * data.updates_per_epoch))
    encoder, output_layers, network = initial_modules(config, data, fast=execution.fast)
    stored_vectors = None
    if init_from is not None:
        record = config.output_layer.record(corpus=data.corpus, targets=data.targets)
        before = initialise_from(
            init_from, encoder, output_layers, record, data=data, network=network
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
    train = config.train
    layer = config.output_layer
    if not config.data.corpus:
        raise InputError(
            "data.corpus is not set: name a corpus directory in the config or with --set data.corpus=DIR"
        )
    corpus = Corpus(config.data.corpus)
    inputs = config.input_layer.open_table(corpus, config.data.input_vectors)
    targets = (
        VectorTable(corpus, config.data.target_vectors)
        if layer.reads_target_vectors
        else inputs
    )
    require_held_out(corpus, train.window)
    for table in (inputs, targets):
        table.transform  # noqa: B018 (it is read, and so checked, before the run begins)
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
        reads_targets=layer.reads_target_vectors,
        candidates=layer.candidates,
    )


def initial_modules(
    config: RunConfig, data: TrainingData, *, fast: bool
) -> tuple[BidirectionalEncoder, OutputLayers, InputNetwork | None]:
    """Modules with random weights; a direction gets the same whichever others are
    trained.
    """
    size = (
        config.encoder.projection_size
        if config.input_layer.shared
        else data.inputs.size
    )
    encoder_config = EncoderConfig(config.encoder, size)
    sources: dict[str, Any] = {
        "projection_size": config.encoder.projection_size,
        "corpus": data.corpus,
        "targets": data.targets,
    }
    with torch.device("meta"):  # without weights of their own
        encoder = BidirectionalEncoder(
            encoder_config,
            directions=data.directions,
            fast=fast,
            recompute=config.train.recompute,
        )
    layers = {}
    with torch.random.fork_rng(devices=[]):
        for index, direction in enumerate(DIRECTIONS):
            if direction in data.directions:
                torch.manual_seed(2 * data.seed + index)
                alone = BidirectionalEncoder(encoder_config, directions=(direction,))
                if not config.output_layer.shared:
                    layers[direction] = config.output_layer.build(**sources)
                encoder.direction(direction).load_state_dict(
                    alone.direction(direction).state_dict(), assign=True
                )
        if config.output_layer.shared:
            torch.manual_seed(SHARED_SEED + data.seed)
            layers[SHARED] = config.output_layer.build(**sources)
        torch.manual_seed(SHARED_SEED - 1 - data.seed)
        network = config.input_layer.build(config.encoder.projection_size, data.inputs)
    if SHARED in layers and (rows := layers[SHARED].tied_rows) is not None:
        if network is None:
            raise InputError(
                "output_layer.tied needs a trained input layer: choose input_layer.kind=words or subwords"
            )
        network.tie(rows)
    return encoder, OutputLayers(layers), network
