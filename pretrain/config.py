"""What can a training run be told, and is it possible?

Each part of the code owns the dataclass of its settings where that part is; `RunConfig` nests them. Defaults are
overridden by the TOML file, and that by `--set section.key=value`. Unknown keys and impossible values are errors.
"""

import math
import tomllib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from elmoc.encoders.lstm import DIRECTIONS, EncoderSizes
from elmoc.errors import InputError
from elmoc.settings import check_settings
from pretrain.run.clock import LogConfig
from pretrain.schedule import ScheduleConfig

PARALLEL = ("data", "directions")
PRECISIONS = ("fp32", "bf16", "auto")
RECURRENCES = ("fused", "plain")


@dataclass(frozen=True)
class DataConfig:
    """What is read: a corpus directory and the names of two of its vector tables.

    tables_on_device: keep the whole tables on the GPU, where they fit, instead of streaming the rows of each window.
    On a CPU it changes nothing but where a window's vectors are read from.
    """

    corpus: str = ""
    input_vectors: str = "input"
    target_vectors: str = "target"
    tables_on_device: bool = False


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
    parallel: str = "data"
    streams: int = 768
    window: int = 20
    mix_shards: int = 8
    epochs: float = 10.0
    updates: int = 0
    carry_state: bool = True
    seed: int = 1
    device: str = "auto"
    threads: int = 0
    precision: str = "fp32"
    recurrence: str = "fused"
    recompute: bool = False
    cuda_graph: bool = False


@dataclass(frozen=True)
class OptimiserConfig:
    """Adam with a bound on the gradient norm of each direction (they are separate models)."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-6
    gradient_norm: float = 1.0


@dataclass(frozen=True)
class EvaluationConfig:
    """Held-out evaluation: every so many updates (0: ten times a run), on so many words, among so many types."""

    every_updates: int = 0
    words: int = 20_000
    candidates: int = 50_000


@dataclass(frozen=True)
class RunConfig:
    """The whole run."""

    data: DataConfig = field(default_factory=DataConfig)
    encoder: EncoderSizes = field(default_factory=EncoderSizes)
    train: TrainConfig = field(default_factory=TrainConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    log: LogConfig = field(default_factory=LogConfig)

    def check(self) -> "RunConfig":
        """Raise an `InputError` that names the key of the first impossible value; returns the config."""
        train, at_least_one = self.train, ("streams", "window", "mix_shards")
        for name in at_least_one:
            _require(getattr(train, name) >= 1, f"train.{name}", getattr(train, name), "at least 1")
        for section, name in (
            ("train", "updates"),
            ("train", "threads"),
            ("train", "seed"),
            ("evaluation", "every_updates"),
        ):
            value = getattr(getattr(self, section), name)
            _require(value >= 0, f"{section}.{name}", value, "0 or more")
        for section, name in (("evaluation", "words"), ("evaluation", "candidates")):
            value = getattr(getattr(self, section), name)
            _require(value >= 1, f"{section}.{name}", value, "at least 1")
        _require(train.epochs > 0, "train.epochs", train.epochs, "above 0")
        for name, known in (("parallel", PARALLEL), ("precision", PRECISIONS), ("recurrence", RECURRENCES)):
            value = getattr(train, name)
            _require(value in known, f"train.{name}", value, f"one of {', '.join(known)}")
        _require(
            len(train.directions) > 0 and list(train.directions) == [d for d in DIRECTIONS if d in train.directions],
            "train.directions",
            list(train.directions),
            '["forward", "backward"], ["forward"] or ["backward"]',
        )
        optimiser = self.optimiser
        for name in ("beta1", "beta2"):
            value = getattr(optimiser, name)
            _require(0 <= value < 1, f"optimiser.{name}", value, "at least 0 and below 1")
        for name in ("epsilon", "gradient_norm"):
            value = getattr(optimiser, name)
            _require(value > 0, f"optimiser.{name}", value, "above 0")
        self.schedule.check()
        check_settings(self.log, lambda name: f"log.{name}")
        return self


def _require(condition: bool, key: str, value: Any, expected: str) -> None:
    if not condition:
        raise InputError(f"{key} must be {expected}, not {value!r}")


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
    return values


def _build(cls: Any, values: Any, where: str, prefix: str) -> Any:
    if not isinstance(values, Mapping):
        raise InputError(f"{where}: {prefix.rstrip('.')} must be a section")
    types = typing.get_type_hints(cls)
    names = [item.name for item in fields(cls)]
    for name in values:
        if name not in names:
            raise InputError(f"{where}: unknown key {prefix}{name} (known: {', '.join(prefix + n for n in names)})")
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
