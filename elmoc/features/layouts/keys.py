"""Keys: how a sentence becomes the name of a dataset, each line its own, and how it is read back from it.

A key is the sentence itself but for what HDF5 cannot have in a name: `/` becomes `%2F`, NUL `%00`, and the sentence
that is a single dot `%2E`. The second line of the same words gets `%#2` at its end, the third `%#3`, and so on; the
line without words is `%#1`. So that every key can be read back, the sign `%` becomes `%25` where what follows it would
make it one of these; before a blank, as in "50 % of", it stays what it is.

Keys of other tools are the sentence as it is, but for those of ELMoForManyLangs, which has tabs between words, and
`$period$` and `$backslash$` in place of `.` and `/`.
"""

import re
from collections.abc import Callable

import h5py

_ESCAPES = {"%": "%25", "/": "%2F", "\0": "%00", ".": "%2E"}
_TO_ESCAPE = re.compile(r"%(?=25|2F|00|2E|#[0-9])|/|\0")
_ESCAPED = re.compile("|".join(_ESCAPES.values()))
_UNESCAPED = {escape: character for character, escape in _ESCAPES.items()}
_NUMBER = re.compile(r"%#[0-9]+$")


def key_of(line: str, is_taken: Callable[[str], bool]) -> str:
    """The key of the next line with this text; `is_taken` says of a key whether there is one already."""
    key = _ESCAPES["."] if line == "." else _TO_ESCAPE.sub(lambda found: _ESCAPES[found[0]], line)
    if key and not is_taken(key):
        return key
    first = 2 if key else 1
    step = 1
    while is_taken(
        f"{key}%#{first + step - 1}"
    ):  # the numbers of a sentence have no gaps: their end is found by halves
        step *= 2
    low, high = first + step // 2 - 1, first + step - 1  # `low` is taken, or comes before the first; `high` is free
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_taken(f"{key}%#{middle}") else (low, middle)
    return f"{key}%#{high}"


def line_of(key: str) -> str:
    """The text of the line that has this key."""
    return _ESCAPED.sub(lambda found: _UNESCAPED[found[0]], _NUMBER.sub("", key))


def foreign_line_of(key: str) -> str:
    """The text of the line that has this key in a file of another tool."""
    return key.replace("$period$", ".").replace("$backslash$", "/")


def in_order(file: h5py.File) -> list[str]:
    """The names in the root of a file, in the order in which they were made if the file tracks it, else by name."""
    root = h5py.h5g.open(file.id, b"/")
    tracked = root.get_create_plist().get_link_creation_order() & h5py.h5p.CRT_ORDER_TRACKED
    names: list[bytes] = []
    root.links.iterate(names.append, idx_type=h5py.h5.INDEX_CRT_ORDER if tracked else h5py.h5.INDEX_NAME)
    return [name.decode() for name in names]
