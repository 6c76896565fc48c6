"""Named files: which files of text the arguments of a command name.

An argument is a file, a folder, or a glob; `NAME=PATH` says what kind of text it is,
its source.
"""

import glob
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from elmoc.corpus import SOURCE_NAME
from elmoc.errors import InputError, reading, say, shortened
from elmoc.files.compression import AnyPath, packing, require_file, unpacked_name
from elmoc.text.arrow_files import ArrowFiles, Parquet

__all__ = ["AnyPath", "Copy", "find_named_files", "split_name"]

# What is text by its name, and what is not: in folders alone.
_TEXTS = (".txt", ".jsonl", ".jsonlines", ".csv", ".tsv", ".parquet", ".arrow")
_OTHERS = re.compile(
    r"(?i)^(readme|licen[cs]e)|\.(json|html?|xml|py|sh|ya?ml|toml|cfg|css|js|pdf|rtf)$"
)
# Bytes at the beginning of other files, which are no text if one of them is zero.
_LOOKED_AT = 4096
# Files of Hugging Face's `save_to_disk`: the list of the files of a dataset, and that
# of the folders of several.
_SAVED = "state.json"
_SPLITS = "dataset_dict.json"


class _DataFile(msgspec.Struct):
    filename: str


class _DatasetState(msgspec.Struct):
    """The content of `state.json`: the files with the rows."""

    data_files: list[_DataFile] = msgspec.field(name="_data_files")


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
    images and other files with zero bytes by their content. Of a saved dataset, the
    files of its rows are read.

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
    if isinstance(path, Copy):
        return [path]
    text = str(path)
    found = [Path(path)]
    # Path("") would be the working directory.
    if text and os.path.isdir(path):
        found = _files_of_folder(Path(path))
    elif glob.has_magic(text) and not os.path.lexists(path):
        found = [Path(each) for each in glob.glob(text, recursive=True)]
    return sorted(file for file in found if file.is_file())


def _files_of_folder(folder: Path) -> list[Path]:
    """The files of text in a folder; a warning counts the others."""
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if "/." not in f"/{file.relative_to(folder)}" and file.is_file()
    ]
    saved = {each.parent for each in files if each.suffix == ".arrow"}
    saved &= {each.parent for each in files if each.name == _SAVED}
    found = [file for each in saved for file in _files_of_dataset(each)]
    others = []
    for file in files:
        if file.parent not in saved and file.name != _SPLITS:
            (found if _is_text(file) else others).append(file)
    if others:
        names = ", ".join(str(file.relative_to(folder)) for file in others)
        say(
            f"warning: {folder}: {len(others):,} files are not read, as they are no "
            f"text: {shortened(names, 200)}",
            file=sys.stderr,
        )
    return found


def _files_of_dataset(folder: Path) -> list[Path]:
    """The files of a saved dataset, beside which may lie others, of its cache."""
    path = folder / _SAVED
    with reading(path):
        state = msgspec.json.decode(path.read_bytes(), type=_DatasetState)
    files = [folder / each.filename for each in state.data_files]
    for file in files:
        require_file(file)
    return files


def _is_text(file: Path) -> bool:
    """Whether a file of a folder is text of any kind; one that is called so is, even if
    it is damaged.
    """
    name = Path(unpacked_name(file)).name
    if name.endswith(_TEXTS) or _OTHERS.search(name):
        return name.endswith(_TEXTS)
    packed = packing(file)
    with open(file, "rb") as opened:
        is_binary = b"\0" in opened.read(_LOOKED_AT)
    if is_binary and packed is None:
        return Parquet().takes(file) or ArrowFiles().takes(file)
    return not isinstance(packed, str)
