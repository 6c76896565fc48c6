"""Unsuitable text: what looks like no text to make words and a corpus of, and what to do with it."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from data_scripts.parts.sources import names_of
from elmoc.errors import InputError
from elmoc.text.raw import count_marks, looks_raw, warn_of_raw_text

_JSON_LINES = 100
"""Of which each has to be an object."""
_TAG = re.compile(r"</(?!s>)[a-z][\w:.-]*\s*>|<br\s*/?>", re.IGNORECASE)
"""What ends an element, or breaks a line; `</s>` ends a sentence of some corpora, and is refused by line."""
_FEW_TAGS, _MANY_TAGS = 5, 0.01
"""More than so many, and than this share of the words, are no quotation."""
_VECTOR = re.compile(r"\S+(?:\s+[-+]?[\d.]+(?:e[-+]?\d+)?){20}(?=\s|$)", re.IGNORECASE)
"""A word and numbers, of which the shortest word vectors that are published have 25."""
_LABELLED_WORD = re.compile(r"(?:\S+ +){1,9}(?:O|[BIESLU]-\S+)|\S+ +\d+ +\d+ +\S+ +\S+ +\S*\*.*")
"""A row of CoNLL-2003, the label of an entity in its last column, or of CoNLL-2012, with a part of a tree."""
_FEWEST_ROWS = 5
_OTHER_LINES = 0.05
"""Of word vectors and of columns, at most: titles, and what is out of place."""
_READ_AS_LATIN = re.compile("[ÃÐÑ][\x80-\x9f¡-ª¬®-º¼-¿]|Ã[Ÿ„–œ]|â€")
"""Of two bytes that are one letter (three, a quotation mark), which is read as two."""
_FEW_SUCH, _MANY_SUCH = 5, 0.001
"""More than so many, and than this share of the words, are no quotation, either."""
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


def check_suitable(
    samples: Iterable[tuple[Path, Sequence[str]]], *, characters: int, tokenised: bool = False
) -> list[Path]:
    """Warn on standard error of files that look like another thing than text of words with spaces between them.

    Returns the files that look raw. Raises `InputError` for JSON lines.

    Args:
        samples: files, and the first lines of each.
        characters: the length at which longer lines are cut there.
        tokenised: whether text has to be tokenised, with a sentence a line; raw text is warned of then, too.
    """
    unsuitable: dict[str, list[Path]] = {}
    marks: dict[Path, tuple[int, int]] = {}
    for file, sample in samples:
        if is_json_lines(sample, characters=characters):
            raise InputError(
                f"{file} holds JSON lines, not text: give a file of the text in them, as for instance `jq -r .text` "
                "makes where the field is called text"
            )
        if looks_like := describe_unsuitable(sample):
            unsuitable.setdefault(looks_like, []).append(file)
        elif tokenised:
            marks[file] = count_marks(sample)
    for looks_like, files in unsuitable.items():
        print(f"warning: {names_of(files)}: this looks like {looks_like}", file=sys.stderr)
    raw = [file for file, (words, with_mark) in marks.items() if looks_raw(words=words, with_mark=with_mark)]
    raw = raw or [file for file, (_, with_mark) in marks.items() if with_mark]  # short files, perhaps raw together
    if raw:
        words, with_mark = (sum(counts) for counts in zip(*(marks[file] for file in raw), strict=True))
        if warn_of_raw_text(names_of(raw), words=words, with_mark=with_mark):
            return raw
    return []


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
    filled = [line for line in map(str.strip, sample) if line]
    if _nearly_all(sum(_VECTOR.match(line) is not None for line in filled), len(filled), least=1):
        return (
            "word vectors, a word and its numbers on each line: give text here, and word vectors to "
            "data_scripts.build_vectors"
        )
    if _is_columns(filled):
        return (
            "columns with tabs between them, whose labels and numbers would become words: give a file of the sentences "
            "alone, which `python -m downstream sentences TASK FILE` prints of a task's file, or `cut -f 2` where they "
            "are the second column"
        )
    if _nearly_all(sum(_LABELLED_WORD.fullmatch(line) is not None for line in filled), len(filled), least=_FEWEST_ROWS):
        return (
            "a word and its labels on each line, all of which would become words: give a file of the sentences alone, "
            "which `python -m downstream sentences TASK FILE` prints of a task's file"
        )
    misread = len(_READ_AS_LATIN.findall(text))
    if misread > _FEW_SUCH and misread > _MANY_SUCH * len(text.split()):
        return (
            "UTF-8 that was read as Latin-1, with two signs for one letter (Ã¼ for ü): convert it back first, as "
            "`iconv -f utf-8 -t latin1` (or `-t cp1252`) does where all of it was"
        )
    if any(_has_no_spaces(text, written, longest) for written, longest in _SCRIPTS_WITHOUT_SPACES):
        return (
            "text without spaces between words (as in Chinese, Japanese or Thai), in which each stretch would become "
            "one word: put spaces between words first, by a tool for its language, and leave data_scripts.tokenize out"
        )
    return None


def _nearly_all(count: int, lines: int, *, least: int) -> bool:
    """Whether so many lines are all of them, but for one or a few; `least` of them or more."""
    return count >= least and lines - count <= max(1, _OTHER_LINES * lines)


def _is_columns(lines: Sequence[str]) -> bool:
    """Whether nearly all lines, comments aside, have the same number of tabs."""
    tabs = Counter(line.count("\t") for line in lines if not line.startswith("#"))
    most, count = next(iter(tabs.most_common(1)), (0, 0))
    return most > 0 and _nearly_all(count, tabs.total(), least=_FEWEST_ROWS)


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
