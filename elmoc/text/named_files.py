"""Named files: which files of text the arguments of a command name.

An argument is a file, a folder, or a glob; `NAME=PATH` says what kind of text it is,
its source.
"""

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elmoc.corpus import SOURCE_NAME
from elmoc.errors import InputError, shortened, warn
from elmoc.files.compression import PACKED, AnyPath, first_bytes

# What is no text by its name, in a folder.
_OTHERS = re.compile(
    r"(?i)^(readme|licen[cs]e)"
    r"|\.(json|html?|xml|py|sh|ya?ml|toml|cfg|css|js|pdf|rtf|xxh3)$"
)
# Bytes at the beginning of other files, which are no text if one of them is zero.
_LOOKED_AT = 4096


@dataclass(frozen=True)
class Copy(os.PathLike[str]):
    """The path of a copy of what can be read once, which messages call by its name."""

    copy: str
    name: str = "standard input"

    def __fspath__(self) -> str:
        return self.copy

    def __str__(self) -> str:
        return self.name


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

    Arguments stay in their order; the files that one of them names are sorted. Of a
    folder, hidden files are left out, and so are those that are no text, which a
    warning names: READMEs and licences, web pages, code and settings by their names,
    images and other files with zero bytes by their content.

    Raises:
        InputError: an argument names no file, or a file is named twice.
    """
    named: dict[AnyPath, str] = {}
    # A link to a file, or another path of it, is the same text again.
    seen: set[str] = set()
    for argument in arguments:
        is_text = isinstance(argument, str)
        name, path = split_name(str(argument)) if is_text else ("", argument)
        found = [path] if isinstance(path, Copy) else _files_of(path)
        if not found:
            is_other = os.path.exists(path) and not os.path.isdir(path)
            raise InputError(
                f"{path} is a pipe or a device: give its content by `-`, as `< {path}`"
                if is_other
                else f"{str(path)!r} names no file: name files that are there"
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
    # Path("") would be the working directory.
    is_there = os.path.exists(path)
    matches = [path] if is_there else glob.glob(str(path), recursive=True)
    found: set[Path] = set()
    for match in map(Path, matches):
        found.update(_files_of_folder(match) if match.is_dir() else [match])
    return sorted(filter(Path.is_file, found))


def _files_of_folder(folder: Path) -> list[Path]:
    """The files of text in a folder; a warning counts the others. A link to one of them
    is left out.

    Raises:
        InputError: a corpus directory is there, whose lexicon is no text.
    """
    found = [
        each for each in folder.rglob("*") if "/." not in f"/{each.relative_to(folder)}"
    ]
    links = [str(each) for each in found if each.is_symlink() and each.is_dir()]
    if links:
        # They may lead back to a folder that is read.
        warn(f"links to folders are not read: {shortened(', '.join(links), 200)}")
    listed = list(filter(Path.is_file, found))
    # The last one of a path stays.
    listed.sort(key=Path.is_symlink, reverse=True)
    files = list({os.path.realpath(each): each for each in listed}.values())
    corpora = {each.parent for each in files if each.name == "corpus.json"}
    corpora &= {each.parent for each in files if each.name == "lexicon.txt"}
    if corpora:
        raise InputError(
            f"{min(corpora)} is a corpus directory: give the text that it is made of"
        )
    others = {each for each in files if not _is_text(each)}
    if others:
        names = sorted(str(each.relative_to(folder)) for each in others)
        warn(
            f"{folder}: {len(others):,} files are not read, as they are no "
            f"text: {shortened(', '.join(names), 200)}"
        )
    return [each for each in files if each not in others]


def _is_text(file: Path) -> bool:
    """Whether a file of a folder is text of any kind."""
    start = first_bytes(file, _LOOKED_AT)
    is_known = start.startswith(PACKED)
    return not _OTHERS.search(file.name) and (is_known or b"\0" not in start)
