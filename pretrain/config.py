"""The config of a run: what it can be told, and how that is read.

Each part of the code owns the dataclass of its settings; `RunConfig` nests them.
Defaults are overridden by the TOML file, and that by `--set section.key=value`. Unknown
keys and impossible values are errors.
"""

import json
import tomllib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from elmoc.encoders import DIRECTIONS, EncoderSizes
from elmoc.encoders.bidirectional import ENCODERS
from elmoc.encoders.lstm import LstmSizes
from elmoc.errors import InputError, reading, shortened
from elmoc.files.records import read_toml
from elmoc.settings import convert
from pretrain.data.sources import DataConfig
from pretrain.data.windows import Order
from pretrain.evaluation import EvaluationConfig
from pretrain.input_layers import InputLayerSettings, VectorInput
from pretrain.input_layers.character_cnn import CharacterCnnInput
from pretrain.input_layers.lookup import SubwordInput, WordInput
from pretrain.optimiser import OptimiserConfig, ScheduleConfig
from pretrain.output_layers import OutputLayerSettings
from pretrain.output_layers.adaptive import AdaptiveSettings
from pretrain.output_layers.continuous import ContinuousSettings
from pretrain.output_layers.contrastive import ContrastiveSettings
from pretrain.output_layers.full_softmax import FullSoftmaxSettings
from pretrain.output_layers.sampled import FixedSettings, SampledSettings


@dataclass(frozen=True)
class TrainConfig:
    """How long a run is, in which pieces it reads text, and where and how it computes."""

    directions: Annotated[
        tuple[str, ...],
        Meta(description='`["forward", "backward"]`, or one of them alone'),
    ] = DIRECTIONS
    parallel: Annotated[
        Literal["data", "directions"],
        Meta(
            description="what several processes divide: `data` (the streams), or "
            "`directions` (half of them train each)"
        ),
    ] = "data"
    streams: Annotated[
        int,
        Meta(
            ge=1,
            description="B, parallel streams of text of one direction, over all "
            "processes",
        ),
    ] = 768
    window: Annotated[
        int, Meta(ge=1, description="T, words of each stream that an update reads")
    ] = 20
    mix_shards: Annotated[
        int,
        Meta(
            ge=1,
            description="shards of the corpus that are shuffled together; memory: "
            "about 40 bytes a token",
        ),
    ] = 8
    order: Annotated[
        Order,
        Meta(
            description="`sentences` are shuffled, or whole `documents`, in which "
            "sentences stay in their order"
        ),
    ] = "sentences"
    epochs: Annotated[
        float, Meta(gt=0, le=1e6, description="how often the text is read")
    ] = 10.0
    # a checkpoint is named by nine digits
    updates: Annotated[
        int,
        Meta(
            ge=0,
            le=10**9 - 1,
            description="length of the run in updates, in place of epochs (0: by "
            "epochs)",
        ),
    ] = 0
    carry_state: Annotated[
        bool, Meta(description="whether recurrent state goes on from window to window")
    ] = True
    seed: Annotated[
        int, Meta(ge=0, lt=2**62, description="of first weights, shuffling and dropout")
    ] = 1
    device: Annotated[str, Meta(description="`auto`, `cpu`, `cuda` or `cuda:N`")] = (
        "auto"
    )
    threads: Annotated[
        int, Meta(ge=0, le=1024, description="of each process (0: PyTorch's choice)")
    ] = 0
    precision: Annotated[
        Literal["float32", "bf16", "auto"],
        Meta(
            description="of matrix products: `float32`, `bf16`, or `auto`, which is "
            "bf16 where the hardware has it"
        ),
    ] = "float32"
    recurrence: Annotated[
        Literal["fused", "plain"],
        Meta(
            description="`fused` is the fast implementation, `plain` the reference "
            "that it equals up to rounding"
        ),
    ] = "fused"
    recompute: Annotated[
        bool,
        Meta(
            description="compute layers again in the backward pass: half of the "
            "memory for activations, a third more time"
        ),
    ] = False

    def __post_init__(self) -> None:
        if not self.directions or list(self.directions) != [
            each for each in DIRECTIONS if each in self.directions
        ]:
            raise InputError(
                'train.directions must be ["forward", "backward"], ["forward"] or ["backward"]'
            )


@dataclass(frozen=True)
class LogConfig:
    """What a run writes while it goes on."""

    every_updates: Annotated[
        int, Meta(ge=1, description="between two lines of `metrics.jsonl`")
    ] = 20
    checkpoint_minutes: Annotated[
        float, Meta(gt=0, le=1e9, description="between two checkpoints")
    ] = 10.0
    checkpoint_updates: Annotated[
        int,
        Meta(
            ge=0,
            description="between two checkpoints, in place of minutes (0: by minutes)",
        ),
    ] = 0
    keep: Annotated[
        int, Meta(ge=1, description="how many of the last checkpoints are kept")
    ] = 2


@dataclass(frozen=True)
class CardConfig:
    """What the model card says that nothing else knows."""

    name: Annotated[str, Meta(description="of the model, the title of its card")] = ""
    licence: Annotated[str, Meta(description="of the text that it is trained on")] = ""


@dataclass(frozen=True)
class RunConfig:
    """The whole run. `input_layer.kind`, `encoder.kind` and `output_layer.kind` choose
    among the kinds there are.
    """

    data: DataConfig = field(default_factory=DataConfig)
    input_layer: InputLayerSettings = field(default_factory=VectorInput)
    encoder: EncoderSizes = field(default_factory=LstmSizes)
    output_layer: OutputLayerSettings = field(default_factory=ContinuousSettings)
    train: TrainConfig = field(default_factory=TrainConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    log: LogConfig = field(default_factory=LogConfig)
    card: CardConfig = field(default_factory=CardConfig)


# The sections whose `kind` chooses their dataclass, by its name in configs and model
# directories; the first of each is the default.
KINDS: dict[str, dict[str, Any]] = {
    "input_layer": {
        "vectors": VectorInput,
        "character_cnn": CharacterCnnInput,
        "subwords": SubwordInput,
        "words": WordInput,
    },
    "encoder": ENCODERS,
    "output_layer": {
        "continuous": ContinuousSettings,
        "contrastive": ContrastiveSettings,
        "softmax": FullSoftmaxSettings,
        "sampled": SampledSettings,
        "fixed": FixedSettings,
        "adaptive": AdaptiveSettings,
    },
}
# Sections and settings that a resumed run may be given anew: where it runs, what it
# leaves and says, and where its data is now (which is known by its content). Another
# device, precision, recurrence or number of threads or processes rounds differently;
# all else stays the same.
FREE_TO_CHANGE = {
    *(
        "log",
        "card",
        "data.corpus",
        "data.input_vectors",
        "data.target_vectors",
        "train.device",
        "train.threads",
    ),
    *("train.parallel", "train.precision", "train.recurrence", "train.recompute"),
}


def load_config(path: Path | str, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a TOML config (see `read_config`) with `section.key=value` overrides.

    An override that names another `kind` of a section leaves out what the file says of
    the section that only its own kind has.
    """
    values = read_config(path)
    given: dict[str, dict[str, Any]] = {}
    for override in overrides:
        section, name, value = read_override(override)
        given.setdefault(section, {})[name] = value
    merge(values, given)
    return config_from_dict(values, f"{path} with --set" if overrides else str(path))


def read_config(path: Path | str) -> dict[str, Any]:
    """The sections of a TOML config, over the sections of the configs that it names as
    its `parent`, if any.

    `parent` is the path of a config, relative to the file, or a list of them, where
    later ones go over earlier ones.
    """
    merged: dict[str, Any] = {}
    with reading(path):
        values = read_toml(path)
        parents = values.pop("parent", [])
        for parent in [parents] if isinstance(parents, str) else parents:
            merge(merged, read_config(Path(path).parent / parent))
        merge(merged, values)
    return merged


def merge(values: dict[str, Any], over: Mapping[str, Any]) -> None:
    """Put the sections of a config over those that are there.

    Where the kind of a section becomes another, what only the kind before has is left
    out.
    """
    for section, settings in over.items():
        before = values.get(section, {})
        if not isinstance(before, dict) or not isinstance(settings, dict):
            values[section] = settings
            continue
        kinds = KINDS.get(section, {})
        old, new = (
            kinds.get(each)
            for each in (
                before.get("kind", next(iter(kinds), "")),
                str(settings.get("kind")),
            )
        )
        if old and new:
            of_other = {each.name for each in fields(old)} - {
                each.name for each in fields(new)
            }
            before = {
                name: value for name, value in before.items() if name not in of_other
            }
        values[section] = before | settings


def read_override(override: str) -> tuple[str, str, Any]:
    """Section, key and value of `section.key=value`; a string need not be quoted."""
    key, separator, text = override.partition("=")
    section, dot, name = key.strip().partition(".")
    if not separator or not dot:
        raise InputError(f"--set takes section.key=value, not {override!r}")
    try:
        return section, name, tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return section, name, text


def config_from_dict(values: Mapping[str, Any], where: str) -> RunConfig:
    """Build a `RunConfig` from nested dictionaries; unknown keys and impossible values
    are `InputError`s.
    """
    sections = {}
    types = typing.get_type_hints(RunConfig)
    for section, settings in values.items():
        if section not in types:
            raise InputError(
                f"{where}: unknown key {section} (known: {', '.join(types)})"
            )
        if not isinstance(settings, Mapping):
            raise InputError(f"{where}: {section} must be a section")
        kind = types[section]
        own = dict(settings)
        if section in KINDS:
            name = str(own.pop("kind", next(iter(KINDS[section]))))
            if name not in KINDS[section]:
                raise InputError(
                    f"{where}: {section}.kind must be one of {', '.join(KINDS[section])}, not {name:.50}"
                )
            kind = KINDS[section][name]
        known = [each.name for each in fields(kind)]
        if unknown := [name for name in own if name not in known]:
            raise InputError(
                f"{where}: unknown key {section}.{unknown[0]} (known: {', '.join(known)})"
            )
        sections[section] = convert(own, kind, where=where, prefix=f"{section}.")
    return RunConfig(**sections)


def config_to_dict(config: RunConfig) -> dict[str, Any]:
    """The resolved config as plain dictionaries, as it is saved with the run."""
    values = asdict(config)
    for section in KINDS:
        values[section] = {"kind": getattr(config, section).kind, **values[section]}
    return {
        section: {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in settings.items()
        }
        for section, settings in values.items()
    }


def all_settings(config: RunConfig) -> dict[str, Any]:
    """The settings of all sections, as `section.key`."""
    sections = config_to_dict(config).items()
    return {
        f"{section}.{name}": value
        for section, values in sections
        for name, value in values.items()
    }


def fixed_settings(config: RunConfig) -> dict[str, Any]:
    """The settings that stay the same as long as a run goes on, as `section.key`."""
    settings = all_settings(config).items()
    return {
        name: value
        for name, value in settings
        if FREE_TO_CHANGE.isdisjoint((name, name.partition(".")[0]))
    }


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names of `now` that had another value `before`, each with both: `train.seed
    (was 1, is 2)`.
    """
    return [
        f"{name} (was {shortened(repr(before.get(name)))}, is {shortened(repr(value))})"
        for name, value in now.items()
        if before.get(name) != value
    ]


def toml_value(value: Any) -> str:
    """A value as TOML has it; dictionaries, whose keys need no quotes, become inline
    tables.
    """
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{name} = {toml_value(each)}" for name, each in value.items())
            + "}"
        )
    # else as JSON has it, but for one control character in strings
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
