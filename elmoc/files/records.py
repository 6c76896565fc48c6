"""Records: how JSON and TOML are read into typed dataclasses, and written.

What a file may hold is said by the dataclass that it is read into: types by its annotations, bounds by
`elmoc.settings.setting`. A value that does not fit is an `InputError` with the file and the path of the field.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from elmoc.errors import InputError, reading
from elmoc.files import MOST_RECORD_BYTES, MOST_TOML_BYTES, atomic_path, require_file
from elmoc.settings import check_settings

T = TypeVar("T")


def read_record(path: Path | str, kind: type[T], *, format: str, version: int) -> T:
    """Read a JSON file with `format` and `version` into a dataclass; see `convert`."""
    info = read_json(path)
    check_version(path, info, format=format, version=version)
    del info["format"], info["version"]
    return convert(info, kind, where=str(path))


def write_record(path: Path | str, record: Any, *, format: str, version: int) -> None:
    """Write a dataclass as `read_record` reads it, atomically."""
    write_json(path, {"format": format, "version": version, **asdict(record)})


def read_json(path: Path | str) -> Any:
    """Read a JSON file."""
    with reading(path):
        return msgspec.json.decode(_text_of(path, MOST_RECORD_BYTES))


def write_json(path: Path | str, value: Any) -> None:
    """Write `value` as indented JSON, atomically."""
    with atomic_path(path) as partial:
        partial.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_toml(path: Path | str) -> dict[str, Any]:
    """Read a TOML file that a user wrote."""
    with reading(path):
        return tomllib.loads(_text_of(path, MOST_TOML_BYTES))


def _text_of(path: Path | str, most: int) -> str:
    require_file(path)
    with open(path, encoding="utf-8-sig") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise InputError(f"it is larger than {most:,} bytes")
    return text


def convert(value: Any, kind: type[T], *, where: str, prefix: str = "") -> T:
    """A value of JSON or TOML as a dataclass, or any other type that annotations can name.

    Args:
        value: of objects, lists, strings, numbers, booleans and null.
        kind: what it has to be; dataclasses inside are checked in the same way, with the bounds of their settings.
        where: what the `InputError` calls the source, e.g. a file.
        prefix: of the paths of fields, e.g. `train.` for a section.
    """
    with reading(where):
        try:
            record = msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise InputError(str(error).replace("`$.", f"`{prefix}")) from error
        _check_fields(value, record, prefix)
        return record


def check_version(path: Path | str, info: Any, *, format: str, version: int) -> None:
    """Raise an `InputError` unless `info` (the content of `path`) is of this format and version."""
    if not isinstance(info, dict) or info.get("format") != format:
        raise InputError(f"{path} is not of the format {format}")
    if info.get("version") != version:
        raise InputError(f"{path} has version {info.get('version')} of the format {format}, elmoc reads {version}")


def _check_fields(value: Any, record: Any, prefix: str) -> None:
    """Raise an `InputError` for unknown keys of dataclasses and for settings out of bounds."""
    if is_dataclass(record) and isinstance(value, Mapping):
        names = [each.name for each in fields(record)]
        for key in value:
            if key not in names:
                raise InputError(f"unknown key {prefix}{key} (known: {', '.join(prefix + name for name in names)})")
        check_settings(record, lambda name: f"{prefix}{name}")
        for key, each in value.items():
            _check_fields(each, getattr(record, key), f"{prefix}{key}.")
    elif isinstance(record, dict):
        for key, each in record.items():
            _check_fields(value[key], each, f"{prefix}{key}.")
    elif isinstance(record, (list, tuple)):
        for index, (each, one) in enumerate(zip(value, record, strict=True)):
            if is_dataclass(one):
                _check_fields(each, one, f"{prefix.rstrip('.')}[{index}].")
