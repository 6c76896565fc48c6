"""Settings: how dataclass fields say which values are possible, and the one check of them.

Every part of the project declares what it can be told as a frozen dataclass beside its code; `setting` makes a field,
`check_settings` raises one sentence for the first impossible value; `add_options` makes options of a command of the
fields, `chosen` reads them.
"""

import argparse
import math
import operator
import re
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import MISSING, field, fields, replace
from typing import Any, TypeVar

from elmoc.errors import InputError

Settings = TypeVar("Settings")

_BOUNDS = {
    "least": ("at least", operator.ge),
    "above": ("above", operator.gt),
    "most": ("at most", operator.le),
    "below": ("below", operator.lt),
}


def setting(
    default: Any = MISSING,
    *,
    help: str = "",
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    choices: Sequence[str] | None = None,
) -> Any:
    """A dataclass field whose value is bounded.

    Args:
        default: of the field; without it the field has none.
        help: one line for the command line.
        least, above, most, below: bounds of a number, included (`least`, `most`) or not (`above`, `below`).
        choices: the possible strings.
    """
    given = {"least": least, "above": above, "most": most, "below": below}
    bounds = {name: each for name, each in given.items() if each is not None}
    metadata = {"help": help, "choices": choices, "bounds": bounds}
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)


def check_settings(settings: Any, name: Callable[[str], str]) -> None:
    """Raise an `InputError` for the first impossible value of a dataclass.

    Args:
        settings: the dataclass instance; a number has to be finite, whether `setting` made its field or not.
        name: what the user calls a field, e.g. `train.streams` or `--batch-size`.
    """
    for each in fields(settings):
        value, needed = getattr(settings, each.name), ""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        choices, bounds = each.metadata.get("choices"), each.metadata.get("bounds", {})
        if choices and value not in choices:
            needed = f"one of {', '.join(choices)}"
        elif isinstance(value, float) and not math.isfinite(value):
            needed = "a finite number"
        elif is_number and not all(_BOUNDS[bound][1](value, limit) for bound, limit in bounds.items()):
            needed = " and ".join(f"{_BOUNDS[bound][0]} {limit}" for bound, limit in bounds.items())
        if needed:
            raise InputError(f"{name(each.name)} must be {needed}, not {reprlib.repr(value)}")


def option_name(name: str) -> str:
    """The option of a field, as it is written in a command."""
    return f"--{name.replace('_', '-')}"


def add_options(group: argparse._ActionsContainer, defaults: Any) -> None:
    """Add an option for each field of a dataclass; its value is None where the command line does not give it."""
    for each in fields(defaults):
        default, choices = getattr(defaults, each.name), each.metadata["choices"]
        text = f"{each.metadata['help']} (default: {default})".replace("%", "%%")
        if isinstance(default, bool):
            group.add_argument(option_name(each.name), action=argparse.BooleanOptionalAction, default=None, help=text)
        else:
            metavar = "|".join(choices) if choices else "N"
            group.add_argument(option_name(each.name), type=type(default), metavar=metavar, help=text)


def chosen(options: argparse.Namespace, defaults: Settings) -> Settings:
    """`defaults` with what the command line gives instead; raises `InputError` for impossible values."""
    settings = replace(defaults, **given_values(options, defaults))  # type: ignore[type-var]
    check_settings(settings, option_name)
    return settings


def given_values(options: argparse.Namespace, settings: Any) -> dict[str, Any]:
    """The values of the fields that the command line gives."""
    values = {each.name: getattr(options, each.name) for each in fields(settings)}
    return {name: value for name, value in values.items() if value is not None}


def parse_duration(text: str) -> float:
    """Seconds from `90s`, `60m`, `2h`, `1d`; raises `InputError`, which names `--max-time`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    seconds = float(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]] if match else 0
    if not seconds:
        raise InputError(f"--max-time takes a number and one of s, m, h, d, such as 60m; not {text!r}")
    return seconds
