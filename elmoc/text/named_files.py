"""Named files: which files of text the arguments of a command name, and how much text
they hold.

An argument is a file, a folder or a glob; `NAME=PATH` says what kind of text it is, its
source.
"""

import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from elmoc.corpus import SOURCE_NAME
from elmoc.errors import InputError
from elmoc.files import compression

# of tokenised English, spaces included; where a corpus is cut into shards depends on
# both numbers
BYTES_PER_TOKEN = 5
# bytes of text for each compressed one
COMPRESSION = 2.7


def split_name(argument: str) -> tuple[str, str]:
    """NAME and PATH of an argument; NAME is "" where it has none (a path may hold an
    equals sign, too).
    """
    name, equals, path = argument.partition("=")
    if not equals or "/" in name or os.path.lexists(argument) or glob.glob(argument):
        return "", argument
    if not re.fullmatch(SOURCE_NAME, name) or not path:
        raise InputError(
            f"{argument} is neither a file nor NAME=PATH with a NAME of letters, digits, _ and -"
        )
    return name, path


def find_named_files(arguments: Sequence[str]) -> dict[Path, str]:
    """The files that arguments such as `PATH` or `NAME=PATH` name, and the source of
    each: NAME, or "" without one.

    PATH is a file, a glob or a folder; arguments stay in their order, what one names is
    sorted, and hidden files in folders are left out. Raises `InputError` for an
    argument that names no file, and for a file that is named twice.
    """
    named: dict[Path, str] = {}
    seen: set[str] = set()
    for argument in arguments:
        name, text = split_name(argument)
        path = Path(text)
        if text and path.is_dir():
            found = [
                file
                for file in path.rglob("*")
                if "/." not in f"/{file.relative_to(path)}"
            ]
        elif glob.has_magic(text) and not os.path.lexists(path):
            found = [Path(each) for each in glob.glob(text, recursive=True)]
        else:
            found = [path]
        found = sorted(file for file in found if file.is_file())
        if not found:
            raise InputError(f"{text!r} names no file: name files that are there")
        for file in found:
            if os.path.realpath(file) in seen:
                raise InputError(f"{file} is named twice: name every input file once")
            seen.add(os.path.realpath(file))
            named[file] = name
    return named


def estimate_text_bytes(path: Path) -> int:
    """About how many bytes of text the file holds (exact for a plain file)."""
    size = path.stat().st_size
    return int(size * COMPRESSION) if compression(path) else size


def estimate_tokens(files: Iterable[Path]) -> int:
    """About how many words of text the files hold."""
    return sum(map(estimate_text_bytes, files)) // BYTES_PER_TOKEN
