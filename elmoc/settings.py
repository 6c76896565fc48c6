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

import inspect
import math
import re
import reprlib
import tomllib
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from msgspec import Meta

from elmoc.errors import InputError, reading

T = TypeVar("T")

# What a bound of `Meta` is in words.
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
# Seconds of a unit of time.
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Setting:
    """One field of a dataclass of settings.

    name: of the field.
    type: of its values, without bounds and None.
    default: `dataclasses.MISSING` where one has to be given.
    help: what it is, in one line.
    choices: the possible values, where they can be listed.
    bounds: of a number, or of the numbers of a list, in words: `at least 1`.
    extra: what else its `Meta` says; `elmoc.command_line` reads it.
    """

    name: str
    type: Any
    default: Any
    help: str
    choices: tuple[str, ...]
    bounds: str
    extra: Mapping[str, Any]


def settings_of(kind: type) -> list[Setting]:
    """The fields of a dataclass, in their order."""
    hints = typing.get_type_hints(kind, include_extras=True)
    found = []
    for each in fields(kind):
        default = each.default
        if each.default_factory is not MISSING:
            default = each.default_factory()
        type_, metas = _unwrapped(hints[each.name])
        bounds = []
        extra: dict[str, Any] = {}
        for meta in metas:
            for bound, words in _BOUNDS.items():
                if getattr(meta, bound) is not None:
                    bounds.append(f"{words} {getattr(meta, bound):,}")
            extra |= meta.extra or {}
        choices = typing.get_args(type_) if typing.get_origin(type_) is Literal else ()
        setting = Setting(
            name=each.name,
            type=type_,
            default=default,
            help=_description(kind, each.name, metas),
            choices=choices,
            bounds=" and ".join(bounds),
            extra=extra,
        )
        found.append(setting)
    return found


def _description(kind: type, name: str, metas: list[Meta]) -> str:
    """The help of a field: its own, or that of a class from which its own inherits."""
    for base in kind.__mro__[1:]:
        # A subclass may change bounds or default, and leaves the help as it is.
        _, inherited = _unwrapped(inspect.get_annotations(base).get(name))
        metas = metas + inherited
    descriptions = [meta.description for meta in metas if meta.description]
    return descriptions[0] if descriptions else ""


def _unwrapped(hint: Any) -> tuple[Any, list[Meta]]:
    """A type without `Annotated` and `| None`, and its `Meta`s, outermost first."""
    metas: list[Meta] = []
    while True:
        origin = typing.get_origin(hint)
        if origin is Annotated:
            metas += [each for each in hint.__metadata__ if isinstance(each, Meta)]
            hint = hint.__origin__
        elif origin in (types.UnionType, typing.Union):
            others = [each for each in typing.get_args(hint) if each is not type(None)]
            if len(others) > 1:
                return hint, metas
            hint = others[0]
        else:
            break
    # Bounds of a list are of its items.
    for inner in typing.get_args(hint):
        if typing.get_origin(inner) is Annotated:
            metas += [each for each in inner.__metadata__ if isinstance(each, Meta)]
    return hint, metas


def option_name(name: str) -> str:
    """The option of a field, as it is written in a command."""
    return f"--{name.replace('_', '-')}"


def checked(options: T, name: Callable[[str], str] = str) -> T:
    """`options`, a dataclass instance, where all of its values are possible.

    A call from Python checks its options so, once, before it begins.

    Args:
        options: the instance; dataclasses inside it are checked in the same way.
        name: what the user calls the field with a path, e.g. `option_name`.

    Raises:
        InputError: names the first field with an impossible value.
    """
    return _converted(plain_values(options), type(options), name=name)


def convert(
    value: Any,
    kind: type[T],
    *,
    where: str,
    prefix: str = "",
    name: Callable[[str], str] | None = None,
) -> T:
    """A value of JSON, TOML or a command line as a dataclass, or any other type that
    annotations can name.

    Args:
        value: of objects, lists, strings, numbers, booleans and null.
        kind: what it has to be; dataclasses inside are checked in the same way.
        where: what the `InputError` calls the source, e.g. a file; may be empty.
        prefix: of the paths of fields, e.g. `train.` for a section.
        name: what the user calls the field with a path, in place of `prefix`.

    Raises:
        InputError: an unknown key, a missing one, or an impossible value.
    """

    def prefixed(path: str) -> str:
        return f"{prefix}{path}"

    if not where:
        return _converted(value, kind, name=name or prefixed)
    with reading(where):
        return _converted(value, kind, name=name or prefixed)


def plain_values(value: Any) -> Any:
    """A value with dataclasses as dictionaries of their fields and tuples as lists, as
    JSON has them; all else as it is, where `asdict` would copy.
    """
    if is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in fields(value)]
        return {name: plain_values(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple):
        return [plain_values(each) for each in value]
    if isinstance(value, dict):
        return {key: plain_values(each) for key, each in value.items()}
    return value


def _converted(value: Any, kind: type[T], *, name: Callable[[str], str]) -> T:
    try:
        record = msgspec.convert(value, kind, dec_hook=_path_of)
    except msgspec.ValidationError as error:
        raise InputError(_explained(str(error), value, kind, name)) from error
    _require_sound(value, record, "", name)
    return record


def _require_sound(
    value: Any, record: Any, path: str, name: Callable[[str], str]
) -> None:
    """Refuse what msgspec lets pass: unknown keys, and numbers that are not finite.

    Args:
        value: of objects and lists.
        record: the same as dataclasses.
        path: of both in the whole.
        name: what the user calls the field with a path.
    """
    inside = f"{path}." if path else ""
    if isinstance(record, float) and not math.isfinite(record):
        raise InputError(f"{name(path)} must be a finite number, not {record}")
    if is_dataclass(record):
        known = [each.name for each in fields(record)]
        for key, each in value.items():
            if key not in known:
                names = ", ".join(name(f"{inside}{other}") for other in known)
                raise InputError(f"unknown key {name(inside + key)} (known: {names})")
            _require_sound(each, getattr(record, key), f"{inside}{key}", name)
    elif isinstance(record, dict):
        for key, each in record.items():
            _require_sound(value[key], each, f"{inside}{key}", name)
    elif isinstance(record, list | tuple):
        for index, each in enumerate(record):
            _require_sound(value[index], each, f"{path}[{index}]", name)


def _path_of(kind: type, value: Any) -> Any:
    """Paths are strings in JSON and TOML; msgspec asks how they are read."""
    if kind is Path and isinstance(value, str | Path):
        return Path(value)
    raise TypeError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")


def _explained(said: str, value: Any, kind: Any, name: Callable[[str], str]) -> str:
    """What msgspec says of a value that does not fit, as a sentence that names its
    field, its bounds, and the value.
    """
    reason, _, place = said.partition(" - at `$")
    path = place.strip("`").removeprefix(".")
    missing = re.search(r"missing required field `(\w+)`", reason)
    if missing:
        return f"{name(f'{path}.{missing[1]}' if path else missing[1])} is missing"
    if not path:
        whole = name("").rstrip(".")
        return f"{whole} must be {_expected(reason)}" if whole else said
    needed = reason[0].lower() + reason[1:]
    for step in re.findall(r"[^.\[\]]+", path.partition("[...]")[0]):
        value = value[int(step) if isinstance(value, list | tuple) else step]
        kind, _ = _unwrapped(kind)
        if not is_dataclass(kind):
            # An item of a list.
            arguments = typing.get_args(kind)
            kind = arguments[0] if arguments else Any
            continue
        settings = {each.name: each for each in settings_of(cast(type, kind))}
        setting = settings[step]
        kind = setting.type
        if setting.choices:
            needed = f"must be one of {', '.join(map(str, setting.choices))}"
        elif setting.bounds and ", got `" not in reason:
            needed = f"must be {setting.bounds}"
        else:
            needed = f"must be {_expected(reason)}"
    if "[...]" in path:
        # In a dictionary. msgspec does not say under which key: each value is tried.
        outer = path.partition("[...]")[0]
        value_kind = typing.get_args(kind)[1]
        for key, each in value.items():

            def inside(inner: str, key: str = key) -> str:
                return name(f"{outer}.{key}.{inner}".rstrip("."))

            _converted(each, value_kind, name=inside)
    return f"{name(path)} {needed}, not {reprlib.repr(value)}"


def _expected(reason: str) -> str:
    """The kind of value that msgspec expected, in words."""
    match = re.match(r"Expected `([^`]*)`", reason)
    words = {
        "int": "a whole number",
        "float": "a number",
        "str": "a string",
        "bool": "true or false",
        "array": "a list",
        "object": "an object",
    }
    if match is None:
        return reason
    kinds = [words.get(each, each) for each in match[1].split(" | ")]
    return " or ".join(each for each in kinds if each != "null")


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
    seconds = 0.0
    if match is not None:
        seconds = float(match[1]) * _SECONDS[match[2]]
    if not seconds:
        raise InputError(
            "--max-time takes a number and one of s, m, h, d, such as 60m; not "
            f"{text!r}"
        )
    return seconds
