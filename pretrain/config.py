"""The config of a run: what it can be told, and how that is read.

Each part of the code owns the dataclass of its settings; `RunConfig` nests them.
Defaults are overridden by the TOML file, and that by `--set section.key=value`. Unknown
keys and impossible values are errors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from msgspec import Meta

from elmoc.encoders import DIRECTIONS, EncoderSizes
from elmoc.encoders.bidirectional import ENCODERS
from elmoc.encoders.lstm import LstmSizes
from elmoc.errors import InputError, reading, shortened
from elmoc.files.records import read_toml
from elmoc.settings import convert, plain_values, value_from_text
from pretrain.data.sources import DataConfig
from pretrain.data.windows import Order
from pretrain.evaluation import EvaluationConfig
from pretrain.input_layers import (
    InputLayerSettings,
    VectorInput,
    alone,
    character_cnn,
    lookup,
)
from pretrain.optimiser import (
    AdamSettings,
    OptimiserSettings,
    ScheduleConfig,
    SgdSettings,
)
from pretrain.output_layers import (
    OutputLayerSettings,
    adaptive,
    continuous,
    contrastive,
    full_softmax,
    sampled,
)


@dataclass(frozen=True)
class TrainConfig:
    """How long a run is, how it reads text, and where and how it computes."""

    directions: Annotated[
        tuple[str, ...],
        Meta(description='`["forward", "backward"]`, or one of them alone'),
    ] = DIRECTIONS
    streams: Annotated[
        int,
        Meta(
            ge=1,
            description="B, the parallel streams of text of one direction, over all "
            "processes",
        ),
    ] = 768
    window: Annotated[
        int, Meta(ge=1, description="T, the words of each stream that an update reads")
    ] = 20
    mix_shards: Annotated[
        int,
        Meta(
            ge=1,
            description="shards of the corpus that are shuffled together; each token "
            "of them takes about 40 bytes of memory",
        ),
    ] = 8
    order: Annotated[
        Order,
        Meta(
            description="shuffle `sentences`, or whole `documents`, whose sentences "
            "stay in their order"
        ),
    ] = "sentences"
    epochs: Annotated[
        float, Meta(gt=0, le=1e6, description="how many times the text is read")
    ] = 10.0
    # The bound: a checkpoint is named by nine digits.
    updates: Annotated[
        int,
        Meta(
            ge=0,
            le=10**9 - 1,
            description="length of the run in updates, in place of `epochs` (0: use "
            "`epochs`)",
        ),
    ] = 0
    carry_state: Annotated[
        bool,
        Meta(description="start each window in the state that the one before it left"),
    ] = True
    seed: Annotated[
        int,
        Meta(
            ge=0,
            lt=2**62,
            description="seed of the first weights, of shuffling and of dropout",
        ),
    ] = 1
    device: Annotated[
        str, Meta(description="where to compute: `auto`, `cpu`, `cuda` or `cuda:N`")
    ] = "auto"
    threads: Annotated[
        int,
        Meta(
            ge=0,
            le=1024,
            description="CPU threads of each process (0: PyTorch's choice)",
        ),
    ] = 0
    precision: Annotated[
        Literal["auto", "float32", "bf16"],
        Meta(
            description="precision of matrix products: `float32`, `bf16`, or `auto`, "
            "which is bf16 where the hardware has it (and a CPU's kernels)"
        ),
    ] = "float32"
    recurrence: Annotated[
        Literal["fused", "plain"],
        Meta(
            description="`fused` is fast, and equals the reference, `plain`, up to "
            "rounding"
        ),
    ] = "fused"

    def __post_init__(self) -> None:
        in_order = [each for each in DIRECTIONS if each in self.directions]
        if not in_order or list(self.directions) != in_order:
            raise InputError(
                "train.directions must be "
                '["forward", "backward"], ["forward"] or ["backward"]'
            )


@dataclass(frozen=True)
class LogConfig:
    """What a run writes while it goes on."""

    every_updates: Annotated[
        int, Meta(ge=1, description="updates between two lines of `metrics.jsonl`")
    ] = 20
    checkpoint_minutes: Annotated[
        float, Meta(gt=0, le=1e9, description="minutes between two checkpoints")
    ] = 10.0
    checkpoint_updates: Annotated[
        int,
        Meta(
            ge=0,
            description="updates between two checkpoints, in place of "
            "`checkpoint_minutes` (0: use minutes)",
        ),
    ] = 0
    keep: Annotated[
        int, Meta(ge=1, description="number of last checkpoints that are kept")
    ] = 2
    tensorboard: Annotated[
        bool,
        Meta(
            description="write the metrics to `tensorboard/` in the run directory, too "
            "(the extra `tensorboard`): `tensorboard --logdir RUN` shows them"
        ),
    ] = False


@dataclass(frozen=True)
class CardConfig:
    """What the model card says that nothing else knows."""

    name: Annotated[
        str, Meta(description="name of the model, the title of its card")
    ] = ""
    licence: Annotated[
        str, Meta(description="licence of the text that it is trained on")
    ] = ""


@dataclass(frozen=True)
class RunConfig:
    """The whole run. `kind` of the sections in `KINDS` chooses among the kinds there
    are.
    """

    data: DataConfig = field(default_factory=DataConfig)
    input_layer: InputLayerSettings = field(default_factory=VectorInput)
    encoder: EncoderSizes = field(default_factory=LstmSizes)
    output_layer: OutputLayerSettings = field(
        default_factory=continuous.ContinuousSettings
    )
    train: TrainConfig = field(default_factory=TrainConfig)
    optimiser: OptimiserSettings = field(default_factory=AdamSettings)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    log: LogConfig = field(default_factory=LogConfig)
    card: CardConfig = field(default_factory=CardConfig)


# The folder of the project's configs.
CONFIGS = Path(__file__).resolve().parent / "configs"
# The sections whose `kind` chooses their dataclass, by its name in configs and model
# directories; the first of each is the default.
KINDS: dict[str, dict[str, Any]] = {
    "input_layer": {
        "vectors": VectorInput,
        "character_cnn": character_cnn.CharacterCnnInput,
        "subwords": lookup.SubwordInput,
        "words": lookup.WordInput,
        "factorised": lookup.FactorisedInput,
        "alone": alone.AloneInput,
    },
    "encoder": ENCODERS,
    "output_layer": {
        "continuous": continuous.ContinuousSettings,
        "contrastive": contrastive.ContrastiveSettings,
        "softmax": full_softmax.FullSoftmaxSettings,
        "sampled": sampled.SampledSettings,
        "fixed": sampled.FixedSettings,
        "adaptive": adaptive.AdaptiveSettings,
    },
    "optimiser": {"adam": AdamSettings, "sgd": SgdSettings},
}
# Sections and settings that a resumed run may be given anew: where it runs, what it
# leaves and says, and where its data is now (which is known by its content). Another
# device, precision, recurrence or number of threads or processes rounds differently;
# all else stays the same.
FREE_TO_CHANGE = frozenset(
    (
        "log",
        "card",
        "data.corpus",
        "data.input_vectors",
        "data.target_vectors",
        "train.device",
        "train.threads",
        "train.precision",
        "train.recurrence",
    )
)


def load_config(
    source: Path | str | Mapping[str, Any], overrides: Sequence[str] = ()
) -> RunConfig:
    """Read a config from a TOML file.

    Args:
        source: the path of the file, see `read_config`; or settings by section.
        overrides: settings that go over the file's, each `section.key=value`; a string
            need not be quoted. Another `kind` of a section leaves out settings of the
            kind that the file names, and comes before all others.

    Raises:
        InputError: an unknown key or an impossible value, which it names.
    """
    where = "the settings" if isinstance(source, Mapping) else str(source)
    values = dict(source) if isinstance(source, Mapping) else read_config(source)
    for override in sorted(
        overrides, key=lambda each: ".kind" not in each.partition("=")[0]
    ):
        key, separator, text = override.partition("=")
        section, dot, name = key.strip().partition(".")
        if not separator or not dot:
            raise InputError(f"--set takes section.key=value, not {override!r}")
        merge(values, {section: {name: value_from_text(text)}})
    return config_from_dict(values, f"{where} with --set" if overrides else where)


def read_config(path: Path | str) -> dict[str, Any]:
    """Read the sections of a TOML config.

    They go over the sections of its `parent`, the path of a config relative to the
    file, or a list of paths, in which later configs go over earlier ones.
    """
    sections: dict[str, Any] = {}
    with reading(path):
        values = read_toml(path)
        parents = values.pop("parent", [])
        if isinstance(parents, str):
            parents = [parents]
        for parent in parents:
            merge(sections, read_config(Path(path).parent / parent))
        merge(sections, values)
    return sections


def merge(values: dict[str, Any], over: Mapping[str, Any]) -> None:
    """Put the sections of a config over those of another, which changes.

    Where the kind of a section changes, settings that only the kind before has are
    dropped.
    """
    for section, settings in over.items():
        before = values.get(section)
        # What is not a section is told when the whole config is read.
        if isinstance(before, dict) and isinstance(settings, dict):
            kinds = KINDS.get(section, {})
            old = kinds.get(before.get("kind", next(iter(kinds), "")))
            new = kinds.get(str(settings.get("kind")))
            if old is not None and new is not None:
                dropped = {each.name for each in fields(old)} - {
                    each.name for each in fields(new)
                }
                before = {name: before[name] for name in before if name not in dropped}
            settings = before | settings
        values[section] = settings


def config_from_dict(values: Mapping[str, Any], where: str) -> RunConfig:
    """Make a config of nested dictionaries.

    Args:
        values: settings by section; `kind` chooses the dataclass of a section.
        where: what an error calls their source, such as a file; may be empty.

    Raises:
        InputError: an unknown key or an impossible value, which it names.
    """
    sections = convert(values, dict[str, dict[str, Any]], where=where)
    types = get_type_hints(RunConfig)
    for section, kinds in KINDS.items():
        kind = sections.setdefault(section, {}).pop("kind", next(iter(kinds)))
        if kind not in list(kinds):
            with reading(where):
                raise InputError(
                    f"{section}.kind must be one of {', '.join(kinds)}, not "
                    f"{kind!s:.50}"
                )
        types[section] = kinds[kind]
    # msgspec reads a class whose sections have the kinds that were chosen.
    read: Any = convert(
        sections,
        make_dataclass("Chosen", [(name, types[name], None) for name in types]),
        where=where,
    )
    return RunConfig(**{name: getattr(read, name) for name in sections})


def config_to_dict(config: RunConfig) -> dict[str, Any]:
    """The settings of all sections as JSON and TOML have them: lists for tuples."""
    kinds = {section: {"kind": getattr(config, section).kind} for section in KINDS}
    return {
        name: kinds.get(name, {}) | settings
        for name, settings in plain_values(config).items()
    }


def all_settings(config: RunConfig) -> dict[str, Any]:
    """The settings of all sections, as `section.key`."""
    return {
        f"{section}.{name}": value
        for section, values in config_to_dict(config).items()
        for name, value in values.items()
    }


def fixed_settings(config: RunConfig) -> dict[str, Any]:
    """The settings that stay the same as long as a run goes on, as `section.key`."""
    return {
        name: value
        for name, value in all_settings(config).items()
        if FREE_TO_CHANGE.isdisjoint((name, name.partition(".")[0]))
    }


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names of `now` that had another value `before`, each with both values:
    `train.seed (was 1, is 2)`.
    """
    return [
        f"{name} (was {shortened(repr(before.get(name)))}, is {shortened(repr(value))})"
        for name, value in now.items()
        if before.get(name) != value
    ]
