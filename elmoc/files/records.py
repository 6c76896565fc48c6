"""Records: JSON and TOML read into typed dataclasses, and written.

What a file may hold is said by the dataclass that it is read into: types by its annotations, bounds by
`elmoc.settings.setting`. A value that does not fit is an `InputError` with the file, the path of the field and what to
do.
"""

import codecs
import json
import re
import reprlib
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from elmoc.errors import InputError, is_utf8, reason
from elmoc.files.text import BROKEN_GZIP, broken_gzip, open_binary
from elmoc.files.writing import atomic_path
from elmoc.settings import check_settings

T = TypeVar("T")
MAX_BYTES = 1 << 28
"""A longer JSON or TOML file is refused: none of ours comes near it."""


def read_record(
    path: Path | str, kind: type[T], *, format: str, version: int, oldest: int | None = None, advice: str = ""
) -> T:
    """Read a JSON file with `format` and `version` into a dataclass; see `read_versioned` and `convert`."""
    info = read_versioned(path, format=format, version=version, oldest=oldest, advice=advice)
    del info["format"], info["version"]
    return convert(info, kind, where=str(path), advice=advice)


def read_versioned(
    path: Path | str, *, format: str, version: int, oldest: int | None = None, advice: str = ""
) -> dict[str, Any]:
    """Read a JSON object that names its `format`, in a version from `oldest` (by default `version`) to `version`."""
    info = read_json(path, advice=advice)
    check_version(path, info, format=format, version=version, oldest=oldest, advice=advice)
    return info


def write_record(path: Path | str, record: Any, *, format: str, version: int) -> None:
    """Write a dataclass as `read_record` reads it, atomically."""
    write_json(path, as_json(record, format=format, version=version))


def as_json(record: Any, *, format: str, version: int) -> dict[str, Any]:
    """A dataclass as the object of JSON that `read_record` reads."""
    return {"format": format, "version": version, **asdict(record)}


def read_json(path: Path | str, *, advice: str = "") -> Any:
    """Read a JSON file; a missing or damaged one is an `InputError` with the `advice`."""
    return parse_json(_read(path), where=str(path), advice=advice)


def parse_json(content: bytes | str, *, where: str, advice: str = "", twice: bool = False) -> Any:
    """The value of a piece of JSON; `where` is what an `InputError` calls it, e.g. a file and a line.

    An object with a key twice is refused, since which of the two values is meant is not known. With `twice` the last
    one counts, which takes much less time and memory.
    """
    repeated: list[str] = []
    try:
        value = msgspec.json.decode(content)
        if not twice:
            json.loads(content, object_pairs_hook=lambda pairs: repeated.extend(_repeated(pairs)))
    except RecursionError:
        raise InputError(f"{where} is nested too deeply") from None
    except ValueError as error:  # also those of msgspec, and of text that is not UTF-8
        raise InputError(f"{where} is not valid JSON ({error}), it may be truncated") from None
    if repeated:
        raise InputError(f"{where} has the key {reprlib.repr(repeated[0])} twice in one object")
    return value


def _repeated(pairs: list[tuple[str, Any]]) -> list[str]:
    """The keys of an object that are there more than once."""
    once = dict(pairs)
    if len(once) == len(pairs):
        return []
    return [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]


def write_json(path: Path | str, value: Any) -> None:
    """Write `value` as indented JSON, atomically."""
    content = json_bytes(path, value)
    with atomic_path(path) as partial:
        partial.write_bytes(content)


def json_bytes(path: Path | str, value: Any) -> bytes:
    """`value` as the indented JSON that is to be written to `path`, which errors name."""
    try:
        return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8")
    except UnicodeEncodeError as error:
        name = error.object[max(0, error.start - 40) : error.end + 40]
        raise InputError(f"{path} cannot record a name that is not valid UTF-8 (near {name!r}): rename it") from None


def read_toml(path: Path | str, *, advice: str = "") -> dict[str, Any]:
    """Read a TOML file that a user wrote; a missing or invalid one is an `InputError`, the latter with the `advice`."""
    try:
        return parse_toml(_read(path).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not valid TOML ({reason(error)})") from None


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a piece of TOML; raises `ValueError`, or `RecursionError` for one that is nested too deeply."""
    return tomllib.loads(text)


def write_toml(path: Path | str, sections: Mapping[str, Mapping[str, Any]]) -> None:
    """Write settings by section as `read_toml` reads them, atomically."""
    with atomic_path(path) as partial:
        partial.write_text("\n".join(map(toml_section, sections, sections.values())), encoding="utf-8")


def toml_section(section: str, values: Mapping[str, Any]) -> str:
    """A section of TOML."""
    return "".join([f"[{section}]\n", *(f"{name} = {toml_value(each)}\n" for name, each in values.items())])


def toml_value(value: Any) -> str:
    """A value as TOML has it; dictionaries, whose keys need no quotes, become inline tables."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {toml_value(each)}" for name, each in value.items()) + "}"
    # else as JSON has it, but for one control character in strings
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def convert(value: Any, kind: type[T], *, where: str, advice: str = "", prefix: str = "") -> T:
    """A value of JSON or TOML as a dataclass, or any other type that annotations can name.

    Args:
        value: of objects, lists, strings, numbers, booleans and null.
        kind: what it has to be; dataclasses inside are checked in the same way, with the bounds of their settings.
        where: what the `InputError` calls the source, e.g. a file.
        advice: what to do about it.
        prefix: of the paths of fields, e.g. `train.` for a section.
    """
    try:
        record = msgspec.convert(value, kind)
        _check_fields(value, record, prefix)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {_problem(str(error), value, prefix)}") from None
    except RecursionError:
        raise InputError(f"{where} is nested too deeply") from None
    except AttributeError as error:
        if error.name != "keys":
            raise
        found = type(error.obj).__name__  # of a checkpoint; msgspec takes what can be indexed for an object
        raise InputError(f"{where}: a value of type {found} stands where an object is expected") from None
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: {error.object[:50]!r} is not valid UTF-8") from None
    except InputError as error:  # also those of `__post_init__`
        raise InputError(f"{where}: {error}") from None
    return record


def check_version(
    path: Path | str, info: Any, *, format: str, version: int, oldest: int | None = None, advice: str = ""
) -> None:
    """Raise an `InputError` unless `info` (the content of `path`) is of this format and of a version known here.

    Known are the versions from `oldest` (by default `version` alone) to `version`.
    """
    oldest = version if oldest is None else oldest
    if not isinstance(info, dict) or info.get("format") != format:
        raise InputError(f"{path} is not of the format {format}")
    found = info.get("version")
    if type(found) is not int or not oldest <= found <= version:
        known = f"version {version}" if oldest == version else f"versions {oldest} to {version}"
        raise InputError(
            f"{path} has version {reprlib.repr(found)} of the format {format}, this elmoc reads {known}: use the elmoc "
            f"that wrote it"
        )


def _read(path: Path | str) -> bytes:
    """The content of a text file, without the byte order mark that some editors put before it."""
    with open_binary(path) as file:
        try:
            content = file.read(MAX_BYTES + 1)
        except BROKEN_GZIP as error:
            raise broken_gzip(path, 0, error) from None
    if len(content) > MAX_BYTES:
        raise InputError(f"{path} is longer than {MAX_BYTES >> 20} MiB, which no such file is: give the right file")
    return content.removeprefix(codecs.BOM_UTF8)


def _problem(message: str, value: Any, prefix: str) -> str:
    """What msgspec found, with the path of the field, and its value where that can be followed."""
    what, _, at = message.partition(" - at ")
    path = at.strip("`").removeprefix("$").removeprefix(".")
    name = (prefix + path).rstrip(".") or "the whole"
    if missing := re.fullmatch(r"Object missing required field `(.*)`", what):
        return f"the field {'.'.join(filter(None, (name.removeprefix('the whole'), missing[1])))} is missing"
    for key, index in re.findall(r"([^.\[\]]+)(?![^\[]*\])|\[(\d+)\]", path):
        try:
            value = value[key or int(index)]
        except (KeyError, IndexError, TypeError):
            break
    if wanted := re.fullmatch(r"Expected `(.*)`, got `(.*)`", what):
        shown = f"not {wanted[2]}" if "[...]" in path else f"not {reprlib.repr(value)}"
        return f"{name} must be of type {wanted[1].replace(' | null', ' or null')}, {shown}"
    return f"{name}: {what[:1].lower()}{what[1:]}"


def _check_fields(value: Any, record: Any, prefix: str) -> None:
    """Raise an `InputError` for unknown keys of dataclasses, settings out of bounds, NUL, and what is not UTF-8."""
    if is_dataclass(record) and isinstance(value, Mapping):
        names = [each.name for each in fields(record)]
        for key in value:
            if key not in names:
                raise InputError(f"unknown key {prefix}{key} (known: {', '.join(prefix + name for name in names)})")
        check_settings(record, lambda name: f"{prefix}{name}")
        for key, each in value.items():
            if isinstance(each, str) and "\0" in each:  # it may be a path
                raise InputError(f"{prefix}{key} holds a NUL character")
            _check_fields(each, getattr(record, key), f"{prefix}{key}.")
    elif isinstance(record, dict):
        for key, each in record.items():
            _check_fields(value[key], each, f"{prefix}{key}.")
    elif isinstance(record, (list, tuple)):
        for index, (each, one) in enumerate(zip(value, record, strict=True)):
            if not isinstance(one, (int, float)):  # of which there may be many
                _check_fields(each, one, f"{prefix.rstrip('.')}[{index}].")
    elif isinstance(record, str) and not is_utf8(record):
        raise InputError(f"{prefix.rstrip('.')} holds a character that is not valid UTF-8")
