"""Records: how JSON and TOML are read into typed dataclasses, and written.

What a file may hold is said by the dataclass that it is read into: types by its
annotations, bounds by `elmoc.settings`. A value that does not fit is an
`InputError` with the file and the path of the field.
"""

import json
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from elmoc.errors import InputError, reading
from elmoc.files.compression import require_file
from elmoc.files.writing import atomic_path
from elmoc.settings import convert

# Bytes of a JSON file: as objects it takes up to thirty times as much.
MOST_RECORD_BYTES = 1 << 23
# Bytes of a TOML file: its reader takes the square of the number of dots in a key,
# which is two seconds for 16,000 dots.
MOST_TOML_BYTES = 1 << 15

T = TypeVar("T")


def read_record(
    path: Path | str,
    kind: type[T],
    *,
    format: str,
    version: int,
    most: int = MOST_RECORD_BYTES,
) -> T:
    """Read a JSON file with `format` and `version` into a dataclass; see `convert`."""
    info = read_json(path, most)
    check_version(path, info, format=format, version=version)
    del info["format"], info["version"]
    return convert(info, kind, where=str(path))


def write_record(path: Path | str, record: Any, *, format: str, version: int) -> None:
    """Write a dataclass as `read_record` reads it, see `write_json`."""
    write_json(path, {"format": format, "version": version, **asdict(record)})


def read_json(path: Path | str, most: int = MOST_RECORD_BYTES) -> Any:
    """Read a JSON file of at most this number of characters."""
    with reading(path):
        # The reader of msgspec takes no names of files that are not UTF-8.
        return json.loads(_text_of(path, most))


def write_json(path: Path | str, value: Any) -> None:
    """Write `value` as indented JSON, atomically, and its checksum."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    with atomic_path(path, checksum=True) as partial:
        # What is not UTF-8 in names of files becomes escapes of JSON.
        partial.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")


def read_toml(path: Path | str) -> dict[str, Any]:
    """Read a TOML file that a user wrote."""
    with reading(path):
        return tomllib.loads(_text_of(path, MOST_TOML_BYTES))


def _text_of(path: Path | str, most: int) -> str:
    """All of a text file, which has at most a number of characters."""
    require_file(path)
    with open(path, encoding="utf-8-sig") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise InputError(f"it is larger than {most:,} bytes")
    return text


def check_version(path: Path | str, info: Any, *, format: str, version: int) -> None:
    """Check the format and version that the content of a file says.

    Raises:
        InputError: they are others.
    """
    if not isinstance(info, dict) or info.get("format") != format:
        raise InputError(f"{path} is not of the format {format}")
    if info.get("version") != version:
        raise InputError(
            f"{path} has version {info.get('version')} of the format {format}, elmoc "
            f"reads {version}"
        )
