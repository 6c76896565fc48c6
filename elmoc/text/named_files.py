"""Text files: which of them the arguments of a command name, how much text it is, and whether it is tokenised.

An argument is a file, a folder or a glob; `NAME=PATH` says what kind of text it is, its source.
"""

import glob
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from elmoc.corpus import BEGIN, END, SOURCE_NAME
from elmoc.errors import InputError
from elmoc.files.text import read_lines
from elmoc.tokenizer import ends_in_mark

# of tokenised English, spaces included; where a corpus is cut into shards depends on both numbers
BYTES_PER_TOKEN = 5
# bytes of text for each compressed one
GZIP_RATIO = 2.7
# text is called raw from this share of words on, where it is about a tenth; in tokenised text it is near nothing
_MANY_WITH_MARK = 0.01
# as few words may be names (Yahoo!), of however few words
_FEW_WITH_MARK = 2


def split_name(argument: str) -> tuple[str, str]:
    """NAME and PATH of an argument; NAME is "" where it has none (a path may hold an equals sign, too)."""
    name, equals, path = argument.partition("=")
    if not equals or "/" in name or os.path.lexists(argument) or glob.glob(argument):
        return "", argument
    if not re.fullmatch(SOURCE_NAME, name) or not path:
        raise InputError(f"{argument} is neither a file nor NAME=PATH with a NAME of letters, digits, _ and -")
    return name, path


def find_files(arguments: Sequence[str]) -> list[Path]:
    """The files that the arguments (files, globs, folders) name: arguments in their order, what one names sorted.

    Hidden files in folders are left out. Raises `InputError` for an argument that names no file, and for a file that is
    named twice.
    """
    files = [file for argument in arguments for file in _files_of(argument)]
    seen: set[str] = set()
    for file in files:
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
        found = [file for file in path.rglob("*") if "/." not in f"/{file.relative_to(path)}"]
    elif glob.has_magic(argument) and not os.path.lexists(path):
        found = [Path(name) for name in glob.glob(argument, recursive=True)]
    else:
        found = [path]
    found = sorted(file for file in found if file.is_file())
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


def sample_lines(path: Path | str, characters: int) -> list[str]:
    """The first lines of a text until there are so many characters, and of each line no more than that."""
    sample: list[str] = []
    found = 0
    for line in read_lines(path):
        sample.append(line[:characters])
        found += len(line)
        if found >= characters:
            break
    return sample


def warn_of_raw_text(name: Path | str, words: Iterable[tuple[str, int]]) -> None:
    """Say so on standard error where a text looks raw, as many of its words have a mark attached.

    Args:
        name: of the text.
        words: each with how many times it occurs.
    """
    total = with_mark = 0
    for word, times in words:
        if word not in (BEGIN, END):
            total += times
            with_mark += times * ends_in_mark(word)
    if with_mark > max(_FEW_WITH_MARK, _MANY_WITH_MARK * total):
        print(
            f"warning: {with_mark / total:.1%} of the words of {name} end in a comma or another mark, as in text that "
            "is not tokenised: give what `python -m data_scripts.tokenize --tokenised no` makes of it",
            file=sys.stderr,
        )
