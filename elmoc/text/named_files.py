"""Named files: which files of text the arguments of a command name.

An argument is a file, a folder, a glob, or `-` for standard input; `NAME=PATH` says
what kind of text it is, its source.
"""

import glob
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from elmoc.corpus import SOURCE_NAME
from elmoc.errors import InputError

AnyPath = os.PathLike[str] | str


@dataclass(frozen=True)
class StandardInput(os.PathLike[str]):
    """The path of a copy of standard input, which messages call by that name."""

    copy: str

    def __fspath__(self) -> str:
        return self.copy

    def __str__(self) -> str:
        return "standard input"


@contextmanager
def rereadable(source: AnyPath) -> Iterator[AnyPath]:
    """A source that can be read more than once: for `-` a copy of standard input, which
    is removed when the block ends; every other source as it is.
    """
    if str(source) != "-":
        yield source
        return
    with tempfile.TemporaryDirectory() as folder:
        with open(Path(folder) / "copy", "wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield StandardInput(copy.name)


def split_name(argument: str) -> tuple[str, str]:
    """NAME and PATH of an argument; NAME is "" where it has none (a path may hold an
    equals sign, too).

    Raises:
        InputError: the argument is no file, and NAME is not one.
    """
    name, equals, path = argument.partition("=")
    if not equals or "/" in name or os.path.lexists(argument) or glob.glob(argument):
        return "", argument
    if not re.fullmatch(SOURCE_NAME, name) or not path:
        raise InputError(
            f"{argument} is neither a file nor NAME=PATH with a NAME of letters, "
            "digits, _ and -"
        )
    return name, path


def find_named_files(arguments: Sequence[AnyPath]) -> dict[AnyPath, str]:
    """The files that arguments such as `PATH` or `NAME=PATH` name, and the source of
    each: NAME, or "" without one.

    Arguments stay in their order; the files that one of them names are sorted, and
    hidden files in folders are left out.

    Raises:
        InputError: an argument names no file, or a file is named twice.
    """
    named: dict[AnyPath, str] = {}
    # A link to a file, or another path of it, is the same text again.
    seen: set[str] = set()
    for argument in arguments:
        name = ""
        if isinstance(argument, str):
            name, argument = split_name(argument)
        found = _files_of(argument)
        if not found:
            raise InputError(
                f"{str(argument)!r} names no file: name files that are there"
            )
        for file in found:
            real = os.path.realpath(file)
            if real in seen:
                raise InputError(f"{file} is named twice: name every input file once")
            seen.add(real)
            named[file] = name
    return named


def _files_of(path: AnyPath) -> Sequence[AnyPath]:
    """The ordinary files that a path names: itself, those of a folder, or of a glob."""
    if isinstance(path, StandardInput):
        return [path]
    text = str(path)
    found = [Path(path)]
    # Path("") would be the working directory.
    if text and os.path.isdir(path):
        folder = Path(path)
        found = [
            file
            for file in folder.rglob("*")
            if "/." not in f"/{file.relative_to(folder)}"
        ]
    elif glob.has_magic(text) and not os.path.lexists(path):
        found = [Path(each) for each in glob.glob(text, recursive=True)]
    return sorted(file for file in found if file.is_file())
