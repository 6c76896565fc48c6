"""Settings of an adaptation: those that the model was trained with, at a lower rate and for a smaller text."""

from pathlib import Path
from typing import Any

from elmoc.errors import InputError
from elmoc.files.records import convert, read_json
from elmoc.model_directory import ADVICE, ModelDirectory
from pretrain.adapt.record import recorded_settings
from pretrain.config import FREE_TO_CHANGE
from pretrain.data.sources import DataConfig
from pretrain.run.directory import NEW_RUN

UPDATES_AT_LEAST = 40
"""Of an epoch: a small text is cut into fewer streams than the model was trained with."""
STREAMS_AT_LEAST = 4
SLOWER = 0.5
"""The rate by that of the training before, where none is given."""
_KEPT = ("output_layer", "train", "optimiser")
_OF_A_RUN = FREE_TO_CHANGE | {f"train.{name}" for name in ("epochs", "updates", "mix_shards", "seed")}
"""Settings that are not taken over: where and how a run was computed, how long it was, and how it shuffled text."""
SOURCES, _RATE, _DIRECTIONS = "data.sources", "schedule.base", "train.directions"


def recipe_of(path: Path, model: ModelDirectory) -> dict[str, dict[str, Any]]:
    """The settings that a model was trained with, by section, as far as they are known.

    A run directory has them in its `config.json`, a model directory in its training record; of a model that two runs
    were joined to, those that both had.
    """
    config = path / "config.json"
    if config.exists() and (path / "model").is_dir():
        where = str(config)
        settings = convert(read_json(config, advice=NEW_RUN), dict[str, dict[str, Any]], where=where, advice=NEW_RUN)
    else:
        where = f"{model.path}/config.json, training.recipe"
        settings = {}
        for key, value in recorded_settings(model)[0].items():
            section, _, name = key.partition(".")
            settings.setdefault(section, {})[name] = value
    return {
        section: {
            name: value for name, value in settings.get(section, {}).items() if f"{section}.{name}" not in _OF_A_RUN
        }
        for section in _KEPT
    } | {"schedule": settings.get("schedule", {}), "data": {"sources": source_weights(settings, where)}}


def not_taken_over(model: ModelDirectory) -> dict[str, str]:
    """The settings that the two runs of a joined model had differently, and who had which.

    Only such as an adaptation takes over from a training, but for the learning rate.
    """
    return {
        key: each
        for key, each in recorded_settings(model)[1].items()
        if key == SOURCES or (key.partition(".")[0] in _KEPT and key not in _OF_A_RUN | {_DIRECTIONS})
    }


def source_weights(settings: dict[str, dict[str, Any]], where: str) -> dict[str, float]:
    """The weights of the sources of text that the model was trained on; those that it does not name have 1."""
    given = settings.get("data", {}).get("sources", {})
    return convert({"sources": given}, DataConfig, where=where, advice=ADVICE, prefix="data.").sources


def learning_rate(recipe: dict[str, dict[str, Any]], model: ModelDirectory, *, given: float | None) -> float:
    """The base rate: the `given` one, else by that of the training before; an `InputError` where neither is known."""
    if given is not None:
        return given
    base = recipe["schedule"].get("base")
    if base is None and (each := recorded_settings(model)[1].get(_RATE)):
        raise InputError(
            f"the directions of {model.path} were trained at different rates ({each}): give --learning-rate"
        )
    if not (isinstance(base, int | float) and base > 0):
        raise InputError(f"{model.path} does not say by which rate it was trained: give --learning-rate, e.g. 1e-3")
    return SLOWER * base


def adapted(
    recipe: dict[str, dict[str, Any]],
    model: ModelDirectory,
    *,
    corpus: Path,
    tokens: int,
    weights: dict[str, float],
    epochs: float,
    rate: float,
) -> dict[str, dict[str, Any]]:
    """The settings of going on with a model on a corpus of which an epoch reads `tokens`, by section."""
    train = recipe["train"]
    window, streams = (
        value if isinstance(value := train.get(name), int) and value > 0 else default
        for name, default in (("window", 20), ("streams", 64))
    )
    encoder = {name: each for name, each in model.encoder.config.to_dict().items() if name != "word_vector_size"}
    kind = model.output_layer.config.get("kind", "continuous")
    return {
        "data": {"corpus": str(corpus), "sources": weights},
        "encoder": encoder,
        "output_layer": {"kind": kind, **recipe["output_layer"]},
        "train": {
            "precision": "auto",
            **train,
            "directions": list(model.encoder.directions),
            "window": window,
            "streams": max(STREAMS_AT_LEAST, min(streams, tokens // (window * UPDATES_AT_LEAST))),
            "epochs": epochs,
            "mix_shards": 20,
        },
        "optimiser": recipe["optimiser"],
        "schedule": {
            "base": rate,
            "linear_warmup_updates": 20,
            "linear_cooldown": 0.6,
        },
    }
