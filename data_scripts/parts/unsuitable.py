"""Unsuitable text: does a file look like another thing than sentences of words with spaces between them?"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from elmoc.errors import InputError
from elmoc.text.raw import sample_lines

# Of each file, from which is seen what it holds.
SAMPLE_CHARACTERS = 10_000
# Columns: the rows that are needed to call a text so, and the share of lines that may have another number of tabs.
_FEWEST_ROWS, _OTHER_LINES = 5, 0.05
# Scripts without spaces, by their characters, and how many of these a word has at most, on average.
_SCRIPTS_WITHOUT_SPACES = (
    (
        re.compile(  # Chinese and Japanese; katakana in a row, in which words from abroad are long, count as one
            "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
            "(?:(?<=[\u30a0-\u30ff])[\u30a0-\u30ff]+)?"
        ),
        4,
    ),
    (re.compile("[\u0e00-\u0eff]"), 10),  # Thai and Lao
    (re.compile("[\u0f00-\u109f\u1780-\u17ff]"), 20),  # Tibetan, Burmese and Khmer
)


def check_suitable(files: Iterable[Path]) -> None:
    """Warn on standard error of columns and of text without spaces; raise an `InputError` for JSON lines."""
    for file in files:
        lines = [line.strip() for line in sample_lines(file, SAMPLE_CHARACTERS) if line.strip()]
        if lines and all(map(_begins_json_object, lines)):
            raise InputError(f"{file} holds JSON lines: give the text in them, e.g. what `jq -r .text {file}` prints")
        if _is_columns(lines):
            looks_like = "columns with tabs between them: give the sentences alone (`python -m downstream sentences`)"
        elif any(_has_no_spaces(" ".join(lines), written, longest) for written, longest in _SCRIPTS_WITHOUT_SPACES):
            looks_like = "text without spaces between words: put them there first, by a tool for the language"
        else:
            continue
        print(f"warning: {file} looks like {looks_like}", file=sys.stderr)


def _begins_json_object(line: str) -> bool:
    if len(line) >= SAMPLE_CHARACTERS:  # it is cut there
        return re.match(r'\{\s*"', line) is not None
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _is_columns(lines: Sequence[str]) -> bool:
    """Whether nearly all lines, comments aside, have the same number of tabs."""
    tabs = Counter(line.count("\t") for line in lines if not line.startswith("#"))
    most, count = next(iter(tabs.most_common(1)), (0, 0))
    return most > 0 and count >= _FEWEST_ROWS and tabs.total() - count <= max(1, _OTHER_LINES * tabs.total())


def _has_no_spaces(text: str, written: re.Pattern[str], longest: int) -> bool:
    """Whether most of a text is of a script, whose stretches have more than `longest` characters of it on average."""
    found, stretches = written.findall(text), text.split()
    if 2 * sum(map(len, found)) <= sum(map(len, stretches)):
        return False
    return len(found) > longest * sum(written.search(stretch) is not None for stretch in stretches)
