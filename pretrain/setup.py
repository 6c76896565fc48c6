"""What has to be opened and checked before the first update?"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

import torch

from elmoc.corpus import Corpus
from elmoc.devices import checked_device
from elmoc.encoders.fused_recurrence import FusedRecurrence, Workspace
from elmoc.encoders.lstm import DIRECTIONS, BidirectionalEncoder, EncoderConfig
from elmoc.encoders.recurrence import Recurrence, plain
from elmoc.errors import InputError
from elmoc.heads import ContinuousHeads
from elmoc.kernels.choose import choose_kernels
from elmoc.model_directory import ModelDirectory, VectorSource, read_model_directory
from elmoc.word_vectors.table import VectorTable
from pretrain.config import RunConfig
from pretrain.data.tables import require_device_memory
from pretrain.data.windows import require_held_out, windows_per_epoch
from pretrain.distributed.processes import Processes


@dataclass
class TrainingSetup:
    """A run's corpus, tables, modules and device, all of them checked."""

    config: RunConfig
    corpus: Corpus
    inputs: VectorTable
    targets: VectorTable
    encoder: BidirectionalEncoder
    heads: ContinuousHeads
    device: torch.device
    per_epoch: int
    """Updates of one epoch."""
    precision: str
    """Of the matrix products here: fp32 or bf16."""
    processes: Processes
    """Those that the run is divided among."""

    @property
    def recurrence(self) -> str:
        """What steps through time here, for people."""
        if self.config.train.recurrence == "plain":
            return "the plain recurrence"
        dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32
        kernels = choose_kernels(self.device.type, dtype, torch.float32)
        return f"the fused recurrence (between its products: {kernels.description})"

    def autocast(self) -> torch.autocast:
        """The context in which encoder and heads compute."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16")

    @property
    def updates(self) -> int:
        """Updates of the whole run as the config has it."""
        return self.config.train.updates or max(1, round(self.config.train.epochs * self.per_epoch))

    @property
    def words_per_update(self) -> int:
        """Words (of each direction) that an update reads: streams times window."""
        return self.config.train.streams * self.config.train.window

    @property
    def parameters(self) -> int:
        """Trainable parameters, of all directions and heads."""
        return sum(parameter.numel() for module in (self.encoder, self.heads) for parameter in module.parameters())

    @property
    def data(self) -> dict[str, str]:
        """What names the data of a run: a resumed run has to read the same."""
        tables = {"data.input_vectors": self.inputs, "data.target_vectors": self.targets}
        return {"data.corpus": f"{self.corpus.lexicon_fingerprint} {self.corpus.train_tokens}"} | {
            key: f"{table.fingerprint} {table.post_processing} {table.rows.dtype}" for key, table in tables.items()
        }

    @property
    def arithmetic(self) -> dict[str, str | bool]:
        """How this process computes: all processes of a run do it alike, and may do it otherwise when it is resumed."""
        train = self.config.train
        return {
            "train.device": self.device.type,
            "train.precision": self.precision,
            "train.parallel": train.parallel,
            "train.recurrence": train.recurrence,
            "train.recompute": train.recompute,
        }

    def model_directory(self, training: dict[str, object]) -> ModelDirectory:
        """What is exported: the encoder and heads as they are now."""
        return ModelDirectory(
            encoder=self.encoder,
            heads=self.heads,
            transform=self.inputs.transform,
            word_vectors=vector_source(self.inputs),
            targets=vector_source(self.targets),
            training=training,
        )


def set_up(config: RunConfig, init_from: str | None = None, processes: Processes | None = None) -> TrainingSetup:
    """Open everything a run needs; `init_from` names a model directory whose weights it goes on from.

    The work is divided among `processes`; None is this process alone.
    """
    if not config.data.corpus:
        raise InputError("data.corpus is not set: name a corpus directory in the config or with --set data.corpus=DIR")
    train = config.train
    processes = processes or Processes()
    processes.assign_directions(train)
    device = choose_device(train.device, processes.local_rank)
    if train.cuda_graph and (device.type != "cuda" or processes.world_size > 1):
        raise InputError(
            f"train.cuda_graph is for one process on a GPU, and this is {processes.world_size} on {device.type}: "
            "leave it out"
        )
    if train.threads:
        torch.set_num_threads(train.threads)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # Triton launches its kernels on the current one
    bf16 = train.precision != "fp32" and has_bf16(device)
    if train.precision == "bf16" and not bf16:
        raise InputError(f"train.precision is bf16, but {device} has no bf16 instructions: use fp32")
    corpus = Corpus(config.data.corpus)
    inputs = VectorTable(corpus, config.data.input_vectors)
    targets = VectorTable(corpus, config.data.target_vectors)
    require_held_out(corpus, train.window)
    if config.data.tables_on_device:
        require_device_memory(inputs, targets, device)
    for table in (inputs, targets):
        table.transform  # noqa: B018 (it is read, and so checked, before the run begins)
    encoder, heads = initial_modules(
        EncoderConfig(word_vector_size=inputs.size, **asdict(config.encoder)),
        directions=train.directions,
        target_size=targets.size,
        seed=train.seed,
        recurrence=partial(FusedRecurrence, Workspace()) if train.recurrence == "fused" else plain,
    )
    for direction in train.directions:
        encoder.direction(direction).recompute = train.recompute
    if init_from is not None:
        initialise_from(encoder, heads, inputs, targets, init_from)
    return TrainingSetup(
        config=config,
        corpus=corpus,
        inputs=inputs,
        targets=targets,
        encoder=encoder,
        heads=heads,
        device=device,
        per_epoch=windows_per_epoch(corpus, train.streams, train.window, mix=train.mix_shards, seed=train.seed),
        precision="bf16" if bf16 else "fp32",
        processes=processes,
    )


def initial_modules(
    config: EncoderConfig,
    *,
    directions: tuple[str, ...],
    target_size: int,
    seed: int,
    recurrence: Callable[[], Recurrence] = plain,
) -> tuple[BidirectionalEncoder, ContinuousHeads]:
    """Encoder and heads with random weights; a direction's weights do not depend on which others are trained."""
    with torch.device("meta"):  # without weights of their own
        encoder = BidirectionalEncoder(config, directions=directions, recurrence=recurrence)
        heads = ContinuousHeads(directions=directions, projection_size=config.projection_size, target_size=target_size)
    for index, direction in enumerate(DIRECTIONS):
        if direction in directions:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(2 * seed + index)
                alone = BidirectionalEncoder(config, directions=(direction,))
                head = ContinuousHeads(
                    directions=(direction,), projection_size=config.projection_size, target_size=target_size
                )
            encoder.direction(direction).load_state_dict(alone.direction(direction).state_dict(), assign=True)
            heads.direction(direction).load_state_dict(head.direction(direction).state_dict(), assign=True)
    return encoder, heads


def initialise_from(
    encoder: BidirectionalEncoder, heads: ContinuousHeads, inputs: VectorTable, targets: VectorTable, path: str
) -> None:
    """Take the weights of a model directory over, and its heads where the targets are of the same kind.

    The same kind is the same word vectors and post-processing; its mean and matrix are those of each corpus, so that
    heads start near what they have to become.

    Raises `InputError` when the sizes, the directions or the input vectors differ.
    """
    model = read_model_directory(path)
    ours, theirs = asdict(encoder.config), asdict(model.encoder.config)
    differing = [f"{name} (here {ours[name]}, there {theirs[name]})" for name in ours if ours[name] != theirs[name]]
    if differing:
        raise InputError(f"--init-from {path}: the encoder has other sizes: {', '.join(differing)}")
    if not set(encoder.directions) <= set(model.encoder.directions):
        raise InputError(f"--init-from {path}: the model has the directions {', '.join(model.encoder.directions)} only")
    if not same_vectors(vector_source(inputs), model.word_vectors) or not inputs.transform.same_as(model.transform):
        raise InputError(
            f"--init-from {path}: the table {inputs.name} was not made as the model's word vectors were (it reads "
            f"{model.word_vectors.origin}, fingerprint {model.word_vectors.fingerprint}, post-processing "
            f"{model.word_vectors.post_processing}): make one by `python -m data_scripts.build_vectors … --like {path}`"
        )
    keep_heads = model.heads is not None and same_vectors(vector_source(targets), model.targets)
    for direction in encoder.directions:
        encoder.direction(direction).load_state_dict(model.encoder.direction(direction).state_dict())
        if keep_heads and model.heads is not None:
            heads.direction(direction).load_state_dict(model.heads.direction(direction).state_dict())
    print(f"going on from {path}" + ("" if keep_heads else "; it has no heads for these targets, so they start anew"))


def same_vectors(one: VectorSource, other: VectorSource) -> bool:
    """Whether two sources are the same vectors, processed in the same way, wherever the files are."""
    return (one.fingerprint, one.size, one.post_processing) == (other.fingerprint, other.size, other.post_processing)


def vector_source(table: VectorTable) -> VectorSource:
    """How a model directory names a table's vectors."""
    return VectorSource(
        origin=table.origin,
        fingerprint=table.fingerprint,
        size=table.size,
        post_processing=table.post_processing,
    )


def choose_device(name: str, number: int = 0) -> torch.device:
    """The device called `name`; `cuda` is the GPU of that number, `auto` too where there is one, else the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        name = f"cuda:{number}"
    return checked_device(name)


def has_bf16(device: torch.device) -> bool:
    """Whether the device multiplies bf16 matrices in hardware."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    # PyTorch has no public name for this; a release without these two is taken to have no bf16
    checks = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return any(check is not None and check() for check in checks)
