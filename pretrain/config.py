"""The config of a run: what it can be told, and whether that is possible.

Each part of the code owns the dataclass of its settings; `RunConfig` nests them. Defaults are overridden by the TOML
file, and that by `--set section.key=value`. Unknown keys and impossible values are errors.
"""

import sys
import tomllib
import typing
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from elmoc.encoders import DIRECTIONS, EncoderSizes
from elmoc.encoders.bidirectional import ENCODERS
from elmoc.encoders.lstm import LstmSizes
from elmoc.errors import InputError
from elmoc.files.records import convert, read_toml
from elmoc.settings import setting
from pretrain.data.sources import DataConfig
from pretrain.data.windows import ORDERS
from pretrain.evaluation import EvaluationConfig
from pretrain.input_layers import InputLayerSettings, VectorInput
from pretrain.input_layers.character_cnn import CharacterCnnInput
from pretrain.input_layers.subwords import SubwordInput
from pretrain.optimiser import OptimiserConfig
from pretrain.output_layers import OutputLayerSettings
from pretrain.output_layers.adaptive import AdaptiveSettings
from pretrain.output_layers.continuous import ContinuousSettings
from pretrain.output_layers.contrastive import ContrastiveSettings
from pretrain.output_layers.full_softmax import FullSoftmaxSettings
from pretrain.output_layers.sampled import FixedSettings, SampledSettings
from pretrain.schedule import ScheduleConfig

PARALLEL = ("data", "directions")
PRECISIONS = ("fp32", "bf16", "auto")
RECURRENCES = ("fused", "plain")
MOST_UPDATES = 10**9 - 1
"""Of a run; a checkpoint's name has nine digits."""


@dataclass(frozen=True)
class TrainConfig:
    """How long and in which pieces: `streams` is B, `window` T; `updates` overrides `epochs` when it is not 0.

    parallel: how several processes share the work: `data` (all train both directions, each on its part of the streams)
    or `directions` (half of them train the forward model, the other half the backward one). One process trains both.
    streams: of one direction, over all the processes that train it, so that their number changes nothing.
    threads: of each process; 0 leaves their number to PyTorch.
    mix_shards: how much text is shuffled together, in shards, of all sources in proportion. An encoder that reads one
    kind of text at a time drifts towards it. Memory: about 40 bytes a token.
    order: what is shuffled: `sentences`, or whole `documents`, in which sentences stay in their order.
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
    order: str = setting(ORDERS[0], choices=ORDERS)
    epochs: float = setting(10.0, above=0, most=1e6)
    updates: int = setting(0, least=0, most=MOST_UPDATES)
    carry_state: bool = True
    seed: int = setting(1, least=0, below=2**62)
    device: str = "auto"
    threads: int = setting(0, least=0, most=1024)
    precision: str = setting("fp32", choices=PRECISIONS)
    recurrence: str = setting("fused", choices=RECURRENCES)
    recompute: bool = False
    cuda_graph: bool = False

    def __post_init__(self) -> None:
        if not self.directions or list(self.directions) != [each for each in DIRECTIONS if each in self.directions]:
            raise InputError(
                f'train.directions must be ["forward", "backward"], ["forward"] or ["backward"], not '
                f"{list(self.directions)!r:.200}"
            )


@dataclass(frozen=True)
class LogConfig:
    """What a run writes while it goes on.

    every_updates: between two lines of `metrics.jsonl`.
    checkpoint_minutes: between two checkpoints.
    checkpoint_updates: between two checkpoints, instead of minutes (0: by minutes).
    keep: how many of the last checkpoints are kept.
    """

    every_updates: int = setting(20, least=1)
    checkpoint_minutes: float = setting(10.0, above=0, most=1e9)
    checkpoint_updates: int = setting(0, least=0)
    keep: int = setting(2, least=1)


@dataclass(frozen=True)
class CardConfig:
    """What the model card says that nothing else knows.

    name: of the model, the title of its card.
    licence: of the text that it is trained on.
    """

    name: str = ""
    licence: str = ""


@dataclass(frozen=True)
class RunConfig:
    """The whole run. `input_layer.kind`, `encoder.kind` and `output_layer.kind` choose among the kinds there are."""

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


OUTPUT_LAYERS: dict[str, type[OutputLayerSettings]] = {
    settings.kind: settings
    for settings in (
        ContinuousSettings,
        ContrastiveSettings,
        FullSoftmaxSettings,
        SampledSettings,
        FixedSettings,
        AdaptiveSettings,
    )
}
"""The output layers there are, by the name that configs and model directories have for them."""
INPUT_LAYERS: dict[str, type[InputLayerSettings]] = {
    settings.kind: settings for settings in (VectorInput, CharacterCnnInput, SubwordInput)
}
"""The inputs there are, by the name that configs have for them."""
FREE_TO_CHANGE = {
    *(f"train.{name}" for name in ("device", "threads", "parallel", "precision")),
    *(f"train.{name}" for name in ("recurrence", "recompute", "cuda_graph")),
    *(f"data.{name}" for name in ("corpus", "input_vectors", "target_vectors")),
    *(f"log.{name}" for name in ("every_updates", "checkpoint_minutes", "checkpoint_updates", "keep")),
    *(f"card.{name}" for name in ("name", "licence")),
}
"""Settings that a resumed run may be given anew: where it runs, what it leaves and says, and where its data is now
(which is known by its content). Another device, precision, recurrence or number of threads or processes rounds
differently; all else stays the same."""
ADVICE = "correct it"
SOURCES = "data.sources must be weights of sources by name, such as data.sources={news=2.0, talk=0.5}"
KINDS: dict[str, Mapping[str, Any]] = {
    "input_layer": INPUT_LAYERS,
    "encoder": ENCODERS,
    "output_layer": OUTPUT_LAYERS,
}
"""Sections whose `kind` chooses their dataclass."""


def load_config(
    path: Path | str, overrides: Sequence[str] = (), *, option: str = "--set", quiet: bool = False
) -> RunConfig:
    """Read a TOML config (see `read_config`), apply `section.key=value` overrides, and check everything.

    An override that names another `kind` of a section leaves out what the file says of the section that
    only its own kind has, and unless `quiet` prints a line for it on stderr. An `InputError` says whether the file is
    wrong or the `option` that gave the overrides.
    """
    values = read_config(path)
    in_file = {section: dict(values[section]) for section in KINDS if isinstance(values.get(section), dict)}
    given: dict[str, dict[str, Any]] = {}
    for override in overrides:
        section, name, value = read_override(override, option)
        given.setdefault(section, {})[name] = value
        if not isinstance(values.setdefault(section, {}), dict):
            raise InputError(f"{path}: {section} must be a section: {ADVICE}")
        values[section][name] = value
    try:
        for section, settings in given.items():
            if "kind" in settings:
                section_type(section, settings, option, advice=ADVICE)
            for name in _settings_of_other_kind(section, in_file.get(section, {}), settings):
                del values[section][name]
                if not quiet:
                    kind = f"{section}.kind={settings['kind']}"
                    print(f"{path}: {section}.{name} is left out: {kind} has no such setting", file=sys.stderr)
        config = config_from_dict(values, str(path), advice=ADVICE)
    except InputError:
        for section, settings in given.items():  # what is wrong by itself is not the file's
            with suppress(InputError):
                config_from_dict({section: values[section]}, option, advice=ADVICE)
                continue  # it may need what the file says
            if "kind" not in settings and "kind" in values[section]:
                section_type(section, values[section], str(path), advice=ADVICE)
                settings = {"kind": values[section]["kind"], **settings}
            config_from_dict({section: settings}, option, advice=ADVICE)
        of_both = str(path)
        with suppress(InputError):
            config_from_dict(read_config(path), of_both, advice=ADVICE)
            of_both = f"{path} with {option}"
        config_from_dict(values, of_both, advice=ADVICE)
        raise
    try:
        config.schedule.check()
    except InputError as error:
        where = f"{path} with {option}" if "schedule" in given else path
        raise InputError(f"{where}: {error}: {ADVICE}") from None
    return config


def read_config(path: Path | str, *, inside: Sequence[Path] = ()) -> dict[str, Any]:
    """The sections of a TOML config, over those of the configs that it names as its `parent`, if any.

    `parent` is the path of one, relative to the file, or a list of them, where later ones go over earlier ones.
    What a parent says of a section that only its kind has is left out where the kind is another. A parent has to be
    a config by itself. A file that is its own parent, directly or through others, is an `InputError`.

    Args:
        path: of the file.
        inside: the files of which it is a parent.
    """
    folder, name = Path(path).parent, Path(path).name
    if name == "config.json" and (folder / "checkpoints").is_dir():
        raise InputError(
            f"{path} is what a run notes of its settings, and no config: to go on with that run, give the TOML file "
            f"that it was started with, {folder} and --resume; to start another, a TOML file"
        )
    values = read_toml(path, advice=f"{ADVICE}, or give a config such as pretrain/configs/small.toml")
    named = values.pop("parent", [])
    parents = [named] if isinstance(named, str) else named
    if not isinstance(parents, list) or not all(isinstance(each, str) for each in parents):
        raise InputError(f"{path}: parent must be the path of a config, or a list of them: {ADVICE}")
    inside = [*inside, Path(path).resolve()]
    merged: dict[str, Any] = {}
    for each in parents:
        parent = Path(path).parent / each
        if parent.resolve() in inside:
            raise InputError(f"{path}: its parent {each} has it as a parent, too: {ADVICE}")
        of_parent = read_config(parent, inside=inside)
        config_from_dict(of_parent, str(parent), advice=ADVICE)
        _merge(merged, of_parent)
    _merge(merged, values)
    return merged


def _merge(values: dict[str, Any], over: Mapping[str, Any]) -> None:
    """Put the sections of a config over those that are there."""
    for section, settings in over.items():
        before = values.get(section)
        if isinstance(before, dict) and isinstance(settings, dict):
            kind = settings.get("kind")
            known = isinstance(kind, str) and kind in KINDS.get(section, {})
            for name in _settings_of_other_kind(section, before, settings) if known else ():
                del before[name]
            before |= settings
        else:
            values[section] = dict(settings) if isinstance(settings, dict) else settings


def _settings_of_other_kind(section: str, in_file: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """The settings of a file's section that its kind has, and the kind that is given in its place has not."""
    kinds = KINDS.get(section, {})
    before = kinds.get(str(in_file.get("kind", next(iter(kinds), None))))
    if before is None or "kind" not in given:
        return []
    own, other = ({each.name for each in fields(kind)} for kind in (kinds[given["kind"]], before))
    return [name for name in in_file if name in other - own and name not in given]


def read_override(override: str, option: str) -> tuple[str, str, Any]:
    """Section, key and value of `section.key=value`; a string need not be quoted."""
    key, separator, text = override.partition("=")
    section, dot, name = key.strip().partition(".")
    if not separator or not dot:
        raise InputError(f"{option} takes section.key=value, not {override!r}")
    try:
        return section, name, tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return section, name, text
    except RecursionError:
        raise InputError(f"{option}: {section}.{name} is nested too deeply: {ADVICE}") from None


def config_from_dict(values: Any, where: str, *, advice: str) -> RunConfig:
    """Build a `RunConfig` from nested dictionaries; unknown keys and impossible values are `InputError`s."""
    sections = {}
    for section, settings in convert(values, dict[str, Any], where=where, advice=advice).items():
        kind = section_type(section, settings, where, advice=advice)
        known = [*(["kind"] if section in KINDS else []), *(each.name for each in fields(kind))]
        if unknown := [name for name in settings if name not in known]:
            raise InputError(f"{where}: {_unknown(section, unknown[0], known)}: {advice}")
        if section == "data" and not _are_weights(settings.get("sources", {})):
            raise InputError(f"{where}: {SOURCES}, not {settings['sources']!r:.50}: {advice}")
        own = {name: value for name, value in settings.items() if name != "kind" or section not in KINDS}
        sections[section] = convert(own, kind, where=where, advice=advice, prefix=f"{section}.")
    return RunConfig(**sections)


def _unknown(section: str, name: str, known: Sequence[str]) -> str:
    """What is wrong with a key of a section that is not among those `known` to its kind: it may be of other kinds."""
    if f"{section}.{name}".startswith("data.sources."):
        return f"{SOURCES}, not {section}.{name}"
    names = ", ".join(f"{section}.{each}" for each in known)
    kinds = [each for each, type in KINDS.get(section, {}).items() if name in {one.name for one in fields(type)}]
    of_others = f"; it belongs to {section}.kind={' or '.join(kinds)}" if kinds else ""
    return f"unknown key {section}.{name} (known: {names}){of_others}"


def _are_weights(sources: Any) -> bool:
    numbers = sources.values() if isinstance(sources, Mapping) else [None]
    return all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in numbers)


def section_type(section: str, settings: Any, where: str, *, advice: str) -> Any:
    """The dataclass of a section, which its `kind` may choose; an `InputError` where one of them is unknown."""
    types = typing.get_type_hints(RunConfig)
    if section not in types:
        raise InputError(f"{where}: unknown key {section} (known: {', '.join(types)}): {advice}")
    if not isinstance(settings, Mapping):
        raise InputError(f"{where}: {section} must be a section: {advice}")
    if section not in KINDS:
        return types[section]
    kinds = KINDS[section]
    kind = settings.get("kind", next(iter(kinds)))  # the first is the default
    if not isinstance(kind, str) or kind not in kinds:
        raise InputError(f"{where}: {section}.kind must be one of {', '.join(kinds)}, not {kind!r:.50}: {advice}")
    return kinds[kind]


def config_to_dict(config: RunConfig) -> dict[str, Any]:
    """The resolved config as plain dictionaries, as it is saved with the run."""
    values = asdict(config)
    for section in KINDS:
        values[section] = {"kind": getattr(config, section).kind, **values[section]}
    return {
        section: {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
        for section, settings in values.items()
    }


def fixed_settings(config: RunConfig) -> dict[str, Any]:
    """The settings that stay the same as long as a run goes on, as `section.key`."""
    return {
        f"{section}.{name}": value
        for section, values in config_to_dict(config).items()
        for name, value in values.items()
        if f"{section}.{name}" not in FREE_TO_CHANGE
    }
