"""The config of a run: what it can be told, and whether that is possible.

Each part of the code owns the dataclass of its settings; `RunConfig` nests them. Defaults are overridden by the TOML
file, and that by `--set section.key=value`. Unknown keys and impossible values are errors.
"""

import math
import tomllib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from elmoc.encoders import DIRECTIONS, EncoderSizes
from elmoc.encoders.bidirectional import ENCODERS
from elmoc.encoders.lstm import LstmSizes
from elmoc.errors import InputError
from elmoc.settings import check_settings, setting
from pretrain.data.sources import DataConfig
from pretrain.evaluation import EvaluationConfig
from pretrain.output_layers import OutputLayerSettings
from pretrain.output_layers.continuous import ContinuousSettings
from pretrain.schedule import ScheduleConfig
from pretrain.train_state import OptimiserConfig

PARALLEL = ("data", "directions")
PRECISIONS = ("fp32", "bf16", "auto")
RECURRENCES = ("fused", "plain")


@dataclass(frozen=True)
class TrainConfig:
    """How long and in which pieces: `streams` is B, `window` T; `updates` overrides `epochs` when it is not 0.

    parallel: how several processes share the work: `data` (all train both directions, each on its part of the streams)
    or `directions` (half of them train the forward model, the other half the backward one). One process trains both.
    streams: of one direction, over all the processes that train it, so that their number changes nothing.
    threads: of each process; 0 leaves their number to PyTorch.
    mix_shards: how many shards' sentences are shuffled together. A shard holds one kind of text where a corpus has
    several, and an encoder that reads one kind at a time drifts towards it. Memory: about 40 bytes a token of them.
    precision: of the matrix products (weights, Adam, cell state and layer norm are float32 in any case): `fp32`,
    `bf16`, or `auto`, which is bf16 where the hardware has it.
    recurrence: `fused` is the fast one, `plain` the reference that it equals up to rounding.
    recompute: keep only what each layer reads, and run it again in the backward pass: about half of the memory for
    activations (of two layers), a third more time.
    cuda_graph: launch each update of a direction as one CUDA graph (one process on a GPU). Each keeps its activations.
    """

    directions: tuple[str, ...] = DIRECTIONS
    parallel: str = setting("data", choices=PARALLEL)
    streams: int = setting(768, least=1)
    window: int = setting(20, least=1)
    mix_shards: int = setting(8, least=1)
    epochs: float = setting(10.0, above=0)
    updates: int = setting(0, least=0)
    carry_state: bool = True
    seed: int = setting(1, least=0)
    device: str = "auto"
    threads: int = setting(0, least=0)
    precision: str = setting("fp32", choices=PRECISIONS)
    recurrence: str = setting("fused", choices=RECURRENCES)
    recompute: bool = False
    cuda_graph: bool = False


@dataclass(frozen=True)
class LogConfig:
    """What a run writes while it goes on.

    every_updates: between two lines of `metrics.jsonl`.
    checkpoint_minutes: between two checkpoints.
    checkpoint_updates: between two checkpoints, instead of minutes (0: by minutes).
    keep: how many of the last checkpoints are kept.
    """

    every_updates: int = setting(20, least=1)
    checkpoint_minutes: float = setting(10.0, above=0)
    checkpoint_updates: int = setting(0, least=0)
    keep: int = setting(2, least=1)


@dataclass(frozen=True)
class RunConfig:
    """The whole run. `encoder.kind` and `output_layer.kind` choose among the kinds there are."""

    data: DataConfig = field(default_factory=DataConfig)
    encoder: EncoderSizes = field(default_factory=LstmSizes)
    output_layer: OutputLayerSettings = field(default_factory=ContinuousSettings)
    train: TrainConfig = field(default_factory=TrainConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    log: LogConfig = field(default_factory=LogConfig)

    def check(self) -> "RunConfig":
        """Raise an `InputError` that names the key of the first impossible value; returns the config."""
        for section in fields(self):
            check_settings(getattr(self, section.name), f"{section.name}.{{}}".format)
        self.schedule.check()
        directions = self.train.directions
        if not directions or list(directions) != [each for each in DIRECTIONS if each in directions]:
            raise InputError(
                f'train.directions must be ["forward", "backward"], ["forward"] or ["backward"], not {list(directions)}'
            )
        return self


OUTPUT_LAYERS = {settings.kind: settings for settings in (ContinuousSettings,)}
"""The output layers there are, by the name that configs and model directories have for them."""
KINDS: dict[str, Mapping[str, Any]] = {"encoder": ENCODERS, "output_layer": OUTPUT_LAYERS}
"""Sections whose `kind` chooses their dataclass."""


def load_config(path: Path | str, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a TOML config, apply `section.key=value` overrides, and check everything."""
    try:
        values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None
    for override in overrides:
        key, separator, text = override.partition("=")
        section, dot, name = key.strip().partition(".")
        if not separator or not dot:
            raise InputError(f"--set takes section.key=value, not {override!r}")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text  # a string need not be quoted on the command line
        section_values = values.setdefault(section, {})
        if not isinstance(section_values, dict):
            raise InputError(f"{path}: {section} must be a section")
        section_values[name] = value
    return config_from_dict(values, str(path)).check()


def config_from_dict(values: Mapping[str, Any], where: str) -> RunConfig:
    """Build a `RunConfig` from nested dictionaries; unknown keys and wrong types are `InputError`s."""
    return _build(RunConfig, values, where, "")


def config_to_dict(config: RunConfig) -> dict[str, Any]:
    """The resolved config as plain dictionaries, as it is saved with the run."""
    values = asdict(config)
    values["train"]["directions"] = list(config.train.directions)
    for section in KINDS:
        values[section] = {"kind": getattr(config, section).kind, **values[section]}
    return values


def _build(cls: Any, values: Any, where: str, prefix: str) -> Any:
    if not isinstance(values, Mapping):
        raise InputError(f"{where}: {prefix.rstrip('.')} must be a section")
    if kinds := KINDS.get(prefix.rstrip(".")):
        values = dict(values)
        kind = values.pop("kind", next(iter(kinds)))  # the first is the default
        if not isinstance(kind, str) or kind not in kinds:
            raise InputError(f"{where}: {prefix}kind must be one of {', '.join(kinds)}, not {kind!r}")
        cls = kinds[kind]
    types = typing.get_type_hints(cls)
    names = [item.name for item in fields(cls)]
    for name in values:
        if name not in names:
            known = ", ".join(prefix + each for each in (["kind", *names] if kinds else names))
            raise InputError(f"{where}: unknown key {prefix}{name} (known: {known})")
    built = {}
    for name, value in values.items():
        kind = types[name]
        key = f"{prefix}{name}"
        if is_dataclass(kind):
            built[name] = _build(kind, value, where, f"{key}.")
        elif typing.get_origin(kind) is tuple:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise InputError(f"{where}: {key} must be a list of strings, not {value!r}")
            built[name] = tuple(value)
        elif kind is float and isinstance(value, int) and not isinstance(value, bool):
            built[name] = float(value)
        elif kind is float and isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{where}: {key} must be a finite number, not {value!r}")
        elif type(value) is not kind:
            raise InputError(f"{where}: {key} must be of type {kind.__name__}, not {value!r}")
        else:
            built[name] = value
    return cls(**built)
