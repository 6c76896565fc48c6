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
_OBJECT = re.compile(r'\s*\{\s*"')
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
"""Their characters, and how many of them a word has at most, on average."""


def check_suitable(samples: Iterable[tuple[Path, Sequence[str]]], *, characters: int) -> None:
    """Warn on standard error of files that look like another thing than text of words with spaces between them.

    Raises `InputError` for JSON lines.

    Args:
        samples: files, and the first lines of each.
        characters: the length at which longer lines are cut there.
    """
    unsuitable: dict[str, list[Path]] = {}
    for file, sample in samples:
        if is_json_lines(sample, characters=characters):
            raise InputError(
                f"{file} holds JSON lines, not text: give a file of the text in them, as for instance `jq -r .text` "
                "makes where the field is called text"
            )
        if looks_like := describe_unsuitable(sample):
            unsuitable.setdefault(looks_like, []).append(file)
    for looks_like, files in unsuitable.items():
        print(f"warning: {names_of(files)}: this looks like {looks_like}", file=sys.stderr)


def is_json_lines(sample: Sequence[str], *, characters: int) -> bool:
    """Whether all of the first lines, blank ones aside, are JSON objects, or begin as one and are cut.

    characters: the length at which longer lines are cut.
    """
    lines = list(islice((line for line in sample if line.strip()), _JSON_LINES))
    return bool(lines) and all(
        _is_json_object(line) or (len(line) == characters and _OBJECT.match(line) is not None) for line in lines
    )


def describe_unsuitable(sample: Sequence[str]) -> str | None:
    """What lines look like of which no good words can be made, and what to do; None for other text."""
    text = "\n".join(sample)
    tags = len(_TAG.findall(text))
    page = re.match(r"\s*<(!doctype )?html\b", text, re.IGNORECASE)
    if page or (tags > _FEW_TAGS and tags > _MANY_TAGS * len(text.split())):
        return (
            "HTML or XML, whose tags would become words: give a file of the text in it, as for instance `pandoc -t "
            "plain --wrap=none` makes of HTML"
        )
    if any(_has_no_spaces(text, written, longest) for written, longest in _SCRIPTS_WITHOUT_SPACES):
        return (
            "text without spaces between words (as in Chinese, Japanese or Thai), in which each stretch would become "
            "one word: put spaces between words first, by a tool for its language, and leave data_scripts.tokenize out"
        )
    return None


def _has_no_spaces(text: str, written: re.Pattern[str], longest: int) -> bool:
    """Whether most of a text is of a script, whose stretches have more than `longest` characters of it on average."""
    found = written.findall(text)
    if not found:
        return False
    stretches = text.split()
    if 2 * sum(map(len, found)) <= sum(map(len, stretches)):
        return False
    return len(found) > longest * sum(written.search(stretch) is not None for stretch in stretches)


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text.strip()), dict)
    except (ValueError, RecursionError):
        return False
