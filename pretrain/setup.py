"""The set-up of a run: everything that has to be opened, made and checked before the first update."""

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from elmoc.corpus import BEGIN, END
from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.errors import InputError
from elmoc.model_directory import ModelDirectory, OutputLayerRecord
from elmoc.word_vectors.opening import read_stored
from elmoc.word_vectors.sources import VectorSource, check_vectors
from elmoc.word_vectors.stored import StoredVectors
from elmoc.word_vectors.transform import VectorTransform
from pretrain.config import RunConfig
from pretrain.data.sources import TrainingData, open_sources
from pretrain.distributed.processes import Processes
from pretrain.execution.device import Execution, choose_execution
from pretrain.init_from import initialise_from
from pretrain.input_layers import InputNetwork
from pretrain.output_layers import SHARED, OutputLayer, OutputLayers, Scorer
from pretrain.train_state import TrainState, new_state

# Seeds of first weights: a shared output layer has 2³¹ + seed, an input network 2³¹ − 1 − seed, the directions
# 2 · seed and 2 · seed + 1. PyTorch's generator on the CPU takes the last 32 bits of a seed alone.
SHARED_SEED = 2**31


@dataclass
class TrainingSetup:
    """The parts of a run, all of them checked.

    updates: of the whole run as the config has it.
    stored_vectors: the word vectors that the encoder reads, where they go with models (see `ModelDirectory`).
    input_network: makes word vectors, if the run trains one.
    started_from: the training record of the model that the run started from, where it did.
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
    started_from: dict[str, Any] | None = None

    @property
    def implementation(self) -> str:
        """What the encoder runs by here, in words."""
        execution = self.execution
        return self.encoder.config.sizes.implementation(
            fast=execution.fast, device=execution.device, dtype=execution.dtype
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

    def training_record(self) -> dict[str, object]:
        """What a model directory says of how it was trained, apart from how far; no clocks: equal runs, equal files."""
        corpus, train = self.data.corpus, self.config.train
        record: dict[str, object] = {name: text for name, text in asdict(self.config.card).items() if text}
        tokens = {
            source: sum(shard.tokens for shard in corpus.train if shard.source == source)
            for source in corpus.sources
            if source and self.config.data.sources.get(source) != 0
        }
        record |= {
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
        if corpus.record.subwords:
            record["units_of_a_word"] = corpus.record.settings["units_of_a_word"]
        if self.started_from is not None:
            record["started_from"] = self.started_from
        return record

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


def set_up(
    config: RunConfig,
    init_from: str | None = None,
    processes: Processes | None = None,
    *,
    own_model: Path | None = None,
) -> TrainingSetup:
    """Open and make everything that a run needs.

    Args:
        config: of the run.
        init_from: names a model directory whose weights it goes on from.
        processes: among which the work is divided; None is this process alone.
        own_model: the model directory that a resumed run has exported.
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
    require_possible(config, execution, processes)
    if train.threads:
        torch.set_num_threads(train.threads)
    data = open_data(config)
    by_epochs = max(1, round(train.epochs * data.updates_per_epoch))  # where there is too little text, it says so
    encoder, output_layers, network = initial_modules(config, data, fast=execution.fast)
    for direction in train.directions:
        encoder.direction(direction).encoder.recompute = train.recompute
    setup = TrainingSetup(
        config,
        data,
        encoder,
        output_layers,
        execution,
        processes,
        updates=train.updates or by_epochs,
        input_network=network,
    )
    if init_from is not None:
        before = initialise_from(
            init_from,
            encoder,
            output_layers,
            OutputLayerRecord(config.output_layer.record(corpus=data.corpus, targets=data.targets), None),
            inputs=data.inputs,
            targets=data.targets if data.reads_targets else None,
            input_network=network,
        )
        setup.started_from, setup.stored_vectors = before.training, before.stored_vectors
    if processes.is_rank0 and network is None:
        source, before_it = data.inputs.source, setup.stored_vectors
        copies = [] if own_model is None else [own_model / source.file_name]
        copies += [before_it] if isinstance(before_it, Path) else []
        setup.stored_vectors = read_stored_vectors(source, copies)
    return setup


def require_possible(config: RunConfig, execution: Execution, processes: Processes) -> None:
    """Raise an `InputError` for settings with each of which alone a run could train, but not with all of them."""
    train, shared = config.train, config.input_layer.shared or config.output_layer.shared
    if shared and train.parallel == "directions" and processes.world_size > 1:
        raise InputError('train.parallel="directions" is for directions that share nothing: leave it out')
    alone = execution.device.type == "cuda" and processes.world_size == 1
    if train.cuda_graph and (shared or not config.output_layer.has_fixed_sizes or not alone):
        raise InputError("train.cuda_graph is for one process on a GPU, and updates that are all alike: leave it out")


def read_stored_vectors(source: VectorSource, copies: Sequence[Path]) -> StoredVectors | None:
    """The stored vectors that the table of inputs was made from, read now: they may be gone when a model is exported.

    None where it was made from others. Of vectors that cannot be found, or have changed, a warning is printed.
    """
    if not source.origin.endswith(".safetensors"):
        return None
    for file in [*filter(Path.is_file, copies), Path(source.origin)]:
        try:
            stored: StoredVectors = read_stored(file)
            check_vectors(stored, source)
        except (InputError, OSError) as error:
            problem = error
        else:
            return stored
    print(
        f"warning: models of this run will not hold their word vectors ({problem}): use them with --vectors",
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


def initial_modules(
    config: RunConfig, data: TrainingData, *, fast: bool
) -> tuple[BidirectionalEncoder, OutputLayers, InputNetwork | None]:
    """Modules with random weights, those of a direction the same whichever others are trained."""
    size = config.encoder.projection_size if config.input_layer.shared else data.inputs.size
    encoder_config = EncoderConfig(config.encoder, size)

    def output_layer() -> OutputLayer:
        return config.output_layer.build(
            projection_size=config.encoder.projection_size, corpus=data.corpus, targets=data.targets
        )

    with torch.device("meta"):  # without weights of their own
        encoder = BidirectionalEncoder(encoder_config, directions=data.directions, fast=fast)
    layers = {}
    with torch.random.fork_rng(devices=[]):
        for index, direction in enumerate(DIRECTIONS):
            if direction in data.directions:
                torch.manual_seed(2 * data.seed + index)
                alone = BidirectionalEncoder(encoder_config, directions=(direction,))
                if not config.output_layer.shared:
                    layers[direction] = output_layer()
                encoder.direction(direction).load_state_dict(alone.direction(direction).state_dict(), assign=True)
        if config.output_layer.shared:
            torch.manual_seed(SHARED_SEED + data.seed)
            layers[SHARED] = output_layer()
        torch.manual_seed(SHARED_SEED - 1 - data.seed)
        network = config.input_layer.build(config.encoder.projection_size, data.inputs)
    output_layers = OutputLayers(layers)
    if (rows := output_layers.tied_rows) is not None:
        if network is None:
            raise InputError("output_layer.tied needs an input layer that is trained: choose input_layer.kind=subwords")
        network.tie(rows)
    return encoder, output_layers, network
