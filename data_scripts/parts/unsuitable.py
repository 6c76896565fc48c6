"""Unsuitable text: what looks like no text to make words and a corpus of, and what to do with it."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from data_scripts.parts.sources import names_of
from elmoc.errors import InputError

_JSON_LINES = 100
"""Of which each has to be an object."""
_TAG = re.compile(r"</(?!s>)[a-z][\w:.-]*\s*>|<br\s*/?>", re.IGNORECASE)
"""What ends an element, or breaks a line; `</s>` ends a sentence of some corpora, and is refused by line."""
_FEW_TAGS, _MANY_TAGS = 5, 0.01
"""More than so many, and than this share of the words, are no quotation."""
_SCRIPTS_WITHOUT_SPACES = (
    ("\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff", 4),  # Chinese and Japanese
    ("\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff", 10),  # Thai, Lao, Tibetan, Burmese and Khmer
)
"""Their characters, and how many of them a word has at most, on average."""


def check_suitable(samples: Iterable[tuple[Path, Sequence[str]]]) -> None:
    """Warn on standard error of files that look like another thing than text of words with spaces between them.

    Raises `InputError` for JSON lines.

    Args:
        samples: files, and the first lines of each.
    """
    unsuitable: dict[str, list[Path]] = {}
    for file, sample in samples:
        if is_json_lines(sample):
            raise InputError(
                f"{file} holds JSON lines, not text: give a file of the text in them, as for instance `jq -r .text` "
                "makes where the field is called text"
            )
        if looks_like := describe_unsuitable(sample):
            unsuitable.setdefault(looks_like, []).append(file)
    for looks_like, files in unsuitable.items():
        print(f"warning: {names_of(files)}: this looks like {looks_like}", file=sys.stderr)


def is_json_lines(sample: Sequence[str]) -> bool:
    """Whether all of the first lines, blank ones aside, are JSON objects."""
    lines = list(islice((line.strip() for line in sample if line.strip()), _JSON_LINES))
    return bool(lines) and all(map(_is_json_object, lines))


def describe_unsuitable(sample: Sequence[str]) -> str | None:
    """What lines look like of which no good words can be made, and what to do; None for other text."""
    text = "\n".join(sample)
    stretches = text.split()
    tags = len(_TAG.findall(text))
    if re.match(r"\s*<(!doctype )?html\b", text, re.IGNORECASE) or tags > max(_FEW_TAGS, _MANY_TAGS * len(stretches)):
        return (
            "HTML or XML, whose tags would become words: give a file of the text in it, as for instance `pandoc -t "
            "plain --wrap=none` makes of HTML"
        )
    for characters, longest in _SCRIPTS_WITHOUT_SPACES:
        written = re.compile(f"[{characters}]")
        letters = [count for count in map(len, map(written.findall, stretches)) if count]
        if 2 * sum(letters) > sum(map(len, stretches)) and sum(letters) > longest * len(letters):
            return (
                "text without spaces between words (as in Chinese, Japanese or Thai), in which each stretch would "
                "become one word: put spaces between words first, by a tool for its language, and leave "
                "data_scripts.tokenize out"
            )
    return None


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
