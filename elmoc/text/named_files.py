"""Named files: which files of text the arguments of a command name, and how much text it is.

An argument is a file, a folder or a glob; `NAME=PATH` says what kind of text it is, its source.
"""

import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from elmoc.corpus import SOURCE_NAME
from elmoc.errors import InputError, is_utf8

# of tokenised English, spaces included; where a corpus is cut into shards depends on both numbers
BYTES_PER_TOKEN = 5
# bytes of text for each compressed one
GZIP_RATIO = 2.7


def split_name(argument: str) -> tuple[str, str]:
    """NAME and PATH of an argument; NAME is "" where it has none (a path may hold an equals sign, too)."""
    name, equals, path = argument.partition("=")
    if not equals or "/" in name or os.path.lexists(argument) or glob.glob(argument):
        return "", argument
    if not re.fullmatch(SOURCE_NAME, name) or not path:
        raise InputError(
            f"{argument} is neither a file nor NAME=PATH with a NAME of letters, digits, _ and -: correct it"
        )
    return name, path


def find_files(arguments: Sequence[str]) -> list[Path]:
    """The files that the arguments (files, globs, folders) name: arguments in their order, what one names sorted.

    Hidden files in folders are left out. Raises `InputError` for an argument that names no file, for a file that is
    named twice, and for a name that is not UTF-8, which the corpus could not record.
    """
    files = [file for argument in arguments for file in _files_of(argument)]
    seen: set[str] = set()
    for file in files:
        if not is_utf8(str(file)):
            raise InputError(f"the name {str(file)!r} is not valid UTF-8: rename the file")
        if os.path.realpath(file) in seen:
            raise InputError(f"{file} is named twice: name every input file once")
        seen.add(os.path.realpath(file))
    return files


def find_named_files(arguments: Sequence[str]) -> dict[Path, str]:
    """The files that arguments such as `PATH` or `NAME=PATH` name, and the source of each: NAME, or "" without one."""
    named = [split_name(argument) for argument in arguments]
    find_files([path for _, path in named])  # raises the errors of all together
    return {file: name for name, path in named for file in _files_of(path)}


def _files_of(argument: str) -> list[Path]:
    path = Path(argument)
    if argument and path.is_dir():
        inside = [file for file in path.rglob("*") if "/." not in f"/{file.relative_to(path)}"]
        found = sorted(file for file in inside if file.is_file())
    elif glob.has_magic(argument) and not os.path.lexists(path):
        found = sorted(Path(name) for name in glob.glob(argument, recursive=True) if Path(name).is_file())
    else:
        found = [path] if argument and path.is_file() else []
    if not found:
        raise InputError(f"{argument!r} names no file: name files that are there")
    return found


def estimate_text_bytes(path: Path) -> int:
    """About how many bytes of text the file holds (exact for a plain file)."""
    size = path.stat().st_size
    return int(size * GZIP_RATIO) if path.suffix == ".gz" else size


def estimate_tokens(files: Iterable[Path]) -> int:
    """About how many words of text the files hold."""
    return sum(map(estimate_text_bytes, files)) // BYTES_PER_TOKEN
