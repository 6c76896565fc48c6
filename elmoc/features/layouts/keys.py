"""Keys: how a sentence becomes the name of a dataset, each line its own, and how it is read back from it.

A key is the sentence itself but for what HDF5 cannot have in a name: `/` becomes `%2F`, NUL `%00`, and the sentence
that is a single dot `%2E`. The second line of the same words gets `%#2` at its end, the third `%#3`, and so on; the
line without words is `%#1`. So that every key can be read back, the sign `%` becomes `%25` where what follows it would
make it one of these; before a blank, as in "50 % of", it stays what it is.

Keys of other tools are the sentence as it is, but for those of ELMoForManyLangs, which has tabs between words, and
`$period$` and `$backslash$` in place of `.` and `/`.
"""

import re
from collections import Counter

_ESCAPES = {"%": "%25", "/": "%2F", "\0": "%00", ".": "%2E"}
_TO_ESCAPE = re.compile(r"%(?=25|2F|00|2E|#[0-9])|/|\0")
_ESCAPED = re.compile("|".join(_ESCAPES.values()))
_UNESCAPED = {escape: character for character, escape in _ESCAPES.items()}
_NUMBER = re.compile(r"%#[0-9]+$")


class SentenceKeys:
    """The keys of lines, in order."""

    def __init__(self) -> None:
        self._lines: Counter[str] = Counter()

    def key_of(self, line: str) -> str:
        """The key of the next line with this text."""
        self._lines[line] += 1
        number = self._lines[line]
        key = _ESCAPES["."] if line == "." else _TO_ESCAPE.sub(lambda found: _ESCAPES[found[0]], line)
        return key if key and number == 1 else f"{key}%#{number}"


def line_of(key: str) -> str:
    """The text of the line that has this key."""
    return _ESCAPED.sub(lambda found: _UNESCAPED[found[0]], _NUMBER.sub("", key))


def foreign_line_of(key: str) -> str:
    """The text of the line that has this key in a file of another tool."""
    return key.replace("$period$", ".").replace("$backslash$", "/")
