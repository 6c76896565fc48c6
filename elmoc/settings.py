"""Settings: how a frozen dataclass says which values a job can be given, and how values
are checked against it.

Every part of the project declares what it can be told as a frozen dataclass beside its
code. A field's annotation holds the type, the bounds and the help:

    streams: Annotated[int, Meta(ge=1, description="parallel streams")] = 768
    order: Literal["sentences", "documents"] = "sentences"

From these are made the reader of JSON and TOML (`convert`), the check of options that
were given in Python (`checked`), the command line (`elmoc.command_line`), and the page
of settings.
"""

import math
import re
import reprlib
import tomllib
import typing
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from msgspec import Meta

from elmoc.errors import InputError, reading

T = TypeVar("T")

# The precision of the factors of matrix products; sums and states are float32. `auto`
# is what `choose_precision` says. In `int8`, for inference on a CPU alone, every row of
# factors has a scale.
Precision = Literal["auto", "float32", "bf16", "int8"]

# Seconds of a unit of time.
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Setting:
    """One field of a dataclass of settings.

    name: of the field.
    hint: its annotation.
    type: of its values, without bounds and None.
    default: `dataclasses.MISSING` where one has to be given.
    help: what it is, in one line.
    choices: the possible values, where they can be listed.
    extra: what else its `Meta` says; `elmoc.command_line` reads it.
    """

    name: str
    hint: Any
    type: Any
    default: Any
    help: str
    choices: tuple[str, ...]
    extra: Mapping[str, Any]


# A corpus has thousands of shards, each of which is a dataclass.
@lru_cache
def settings_of(kind: type) -> tuple[Setting, ...]:
    """The fields of a dataclass, in their order."""
    hints = typing.get_type_hints(kind, include_extras=True)
    found = []
    for each in fields(kind):
        make = each.default_factory
        default = each.default if make is MISSING else make()
        type_, metas = _unwrapped(hints[each.name])
        found.append(
            Setting(
                name=each.name,
                hint=hints[each.name],
                type=type_,
                default=default,
                help=" ".join(meta.description for meta in metas if meta.description),
                choices=_choices(type_),
                extra=ChainMap(*[meta.extra for meta in metas if meta.extra]),
            )
        )
    return tuple(found)


def _choices(kind: Any) -> tuple[str, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) is Literal else ()


def _unwrapped(hint: Any) -> tuple[Any, list[Meta]]:
    """A type without `Annotated` and `| None`, and its `Meta`s, outermost first."""
    metas: list[Meta] = []
    while True:
        others = [each for each in typing.get_args(hint) if each is not NoneType]
        if typing.get_origin(hint) is Annotated:
            metas += [each for each in hint.__metadata__ if isinstance(each, Meta)]
            hint = hint.__origin__
        elif typing.get_origin(hint) in (UnionType, typing.Union) and len(others) == 1:
            hint = others[0]
        else:
            return hint, metas


def option_name(name: str) -> str:
    """The option of a field, as it is written in a command."""
    return f"--{name.replace('_', '-')}"


def checked(options: T) -> T:
    """`options`, a dataclass instance, where all of its values are possible.

    A call from Python checks its options so, once, before it begins; see `convert`.
    """
    return convert(plain_values(options), type(options))


def convert(
    value: Any, kind: type[T], *, where: str = "", name: Callable[[str], str] = str
) -> T:
    """A value of JSON, TOML or a command line as a dataclass, or any other type that
    annotations can name.

    Args:
        value: of objects, lists, strings, numbers, booleans and null.
        kind: what it has to be; dataclasses inside are checked in the same way.
        where: what the `InputError` calls the source, e.g. a file; may be empty.
        name: what the user calls the field with a path, e.g. `option_name`.

    Raises:
        InputError: an unknown key, a missing one, or an impossible value.
    """
    with reading(where):
        return cast(T, _converted(value, kind, "", name))


def plain_values(value: Any) -> Any:
    """A value with dataclasses as dictionaries of their fields and tuples as lists, as
    JSON has them; all else as it is, where `asdict` would copy.
    """
    if is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, list | tuple):
        return [plain_values(each) for each in value]
    if isinstance(value, dict):
        return {key: plain_values(each) for key, each in value.items()}
    return value


def _converted(value: Any, hint: Any, path: str, name: Callable[[str], str]) -> Any:
    """See `convert`.

    Args:
        value: at `path` in the whole.
        hint: what it has to be.
        path: such as `parts[1].size`.
        name: what the user calls the field with a path.
    """
    kind, _ = _unwrapped(hint)
    origin = typing.get_origin(kind) or kind
    # Of a list (first) or a dictionary (last); all kinds of values where none is named.
    items = typing.get_args(kind) or (Any,)
    # Of `tuple[int, int]` each item has a type of its own: msgspec checks it whole.
    takes_items = origin in (list, Any) or items[1:] == (...,)
    inside = f"{path}." if path else ""
    if is_dataclass(kind) and isinstance(value, Mapping):
        return origin(**_converted_fields(value, cast(type, kind), inside, name))
    if origin in (dict, Any) and isinstance(value, Mapping):
        value = {
            key: _converted(each, items[-1], f"{inside}{key}", name)
            for key, each in value.items()
        }
    elif takes_items and isinstance(value, list | tuple):
        value = [
            _converted(each, items[0], f"{path}[{index}]", name)
            for index, each in enumerate(value)
        ]
    try:
        record = msgspec.convert(value, hint, dec_hook=_path_of)
    except msgspec.ValidationError as error:
        called = name(path).rstrip(".") or "it"
        choices = ", ".join(map(str, _choices(kind)))
        # msgspec says what it expected.
        said = f"Expected one of {choices}" if choices else str(error)
        raise InputError(f"{called} is {reprlib.repr(value)}: {said}") from error
    if isinstance(record, float) and not math.isfinite(record):
        raise InputError(f"{name(path)} must be a finite number, not {record}")
    return record


def _converted_fields(
    value: Mapping[Any, Any], kind: type, inside: str, name: Callable[[str], str]
) -> dict[str, Any]:
    """The fields of a dataclass that a mapping gives; see `convert`.

    Args:
        value: the mapping.
        kind: the dataclass.
        inside: what the path of a field begins with.
        name: what the user calls the field with a path.
    """
    settings = {each.name: each for each in settings_of(kind)}
    for key in value:
        if key not in settings:
            known = ", ".join(name(f"{inside}{each}") for each in settings)
            key = name(f"{inside}{key}")
            raise InputError(f"unknown key {key} (known: {known})")
    found = {}
    for key, setting in settings.items():
        path = f"{inside}{key}"
        if key in value:
            found[key] = _converted(value[key], setting.hint, path, name)
        elif setting.default is MISSING:
            raise InputError(f"{name(path)} is missing")
    return found


def _path_of(kind: type, value: Any) -> Any:
    """Paths are strings in JSON and TOML; msgspec asks how they are read."""
    if kind is Path and isinstance(value, str | Path):
        return Path(value)
    raise TypeError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")


def value_from_text(text: str) -> Any:
    """A value as TOML writes it; what is none is a string without its quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def parse_duration(text: str) -> float:
    """Seconds from `90s`, `60m`, `2h`, `1d`; raises `InputError`, which names
    `--max-time`.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if match is None or not float(match[1]):
        raise InputError(
            "--max-time takes a number and one of s, m, h, d, such as 60m; not "
            f"{text!r}"
        )
    return float(match[1]) * _SECONDS[match[2]]
