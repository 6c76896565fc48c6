"""Record of a training: what a model says of it, whether one run trained it or two, whose directions were joined."""

from collections.abc import Mapping
from typing import Any

from elmoc.encoders import DIRECTIONS
from elmoc.files.records import convert
from elmoc.model_directory import ADVICE, ModelDirectory

_BESIDE_THE_RECIPE = {"streams": "train.streams", "window": "train.window", "learning_rate": "schedule.base"}
"""Settings that a record has by themselves, too; those of older versions have no recipe."""


def records_of(training: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The training record of each direction, where two runs were joined; else the one there is, under no name."""
    if all(isinstance(training.get(name), Mapping) for name in DIRECTIONS):
        return {name: _record_of(training, name) for name in DIRECTIONS}
    return {"": training}


def _record_of(training: Mapping[str, Any], direction: str) -> Mapping[str, Any]:
    while isinstance(half := training.get(direction), Mapping):  # a half may have been taken from a joined model
        training = half
    return training


def agreed(values: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """What all records say alike by name, and of what they do not, which of them says what: `forward 4, backward 8`."""
    first, *others = values.values()
    alike = {name: each for name, each in first.items() if all(name in one and one[name] == each for one in others)}
    differing = {
        name: ", ".join(f"{which} {one.get(name, 'unknown')}" for which, one in values.items())
        for name in dict.fromkeys(name for one in values.values() for name in one)
        if name not in alike
    }
    return alike, differing


def recorded_settings(model: ModelDirectory) -> tuple[dict[str, Any], dict[str, str]]:
    """The settings that a model was trained with, as `section.key`, and those that its directions had differently.

    See `agreed`. Raises `InputError` for a record that is damaged.
    """
    return agreed({name: _settings(model, name, record) for name, record in records_of(model.training).items()})


def _settings(model: ModelDirectory, direction: str, record: Mapping[str, Any]) -> dict[str, Any]:
    where = ".".join(filter(None, (f"{model.path}/config.json, training", direction, "recipe")))
    recipe = convert(record.get("recipe", {}), dict[str, Any], where=where, advice=ADVICE)
    return {key: record[name] for name, key in _BESIDE_THE_RECIPE.items() if name in record} | recipe
