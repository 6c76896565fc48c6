"""Suitable text: is a file sentences of words with spaces between them, and is it tokenised?"""

import re
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from elmoc.corpus import BEGIN, END
from elmoc.errors import InputError, say
from elmoc.files import read_lines
from elmoc.tokenizer import WITH_MARK

# characters of each file by which it is judged
SAMPLE_CHARACTERS = 10_000
# Columns: pairs of lines that follow each other, at least (half as many where tabs divide three fields or more), the
# share of them that have the same number of fields, and of lines that end in a tag where blanks divide the fields.
_FEWEST_PAIRS, _LIKE_PAIRS, _TAGGED_LINES = 4, 0.95, 0.8
_TAG = re.compile(r"O|[BIESMLU]-\S+|[-_*]|\(?\S*\*\)*|\(?\d+\)?(\|\S+)?|[A-Z]{1,5}\$?")
# Scripts without spaces. A match is about as much text in each of them: a character of Chinese or Japanese, a row of
# katakana (long words from abroad), three characters of Thai or Lao, five of Tibetan, Burmese or Khmer.
_WITHOUT_SPACES = re.compile(
    "[\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[\u30a0-\u30ff]+|[\u0e00-\u0eff]{1,3}"
    "|[\u0f00-\u109f\u1780-\u17ff]{1,5}"
)
# matches that a word has at most, on average
_LONGEST_WORD = 4
# text is called raw from this share of words on, where it is about a tenth; in tokenised text it is near nothing
_MANY_WITH_MARK = 0.01
# as few words may be names (Yahoo!), of however few words
_FEW_WITH_MARK = 2


def check_suitable(path: Path | str, *, warn: bool = True) -> None:
    """Raise an `InputError` for JSON lines and for columns; with `warn`, warn on standard error of missing spaces."""
    lines = [line.strip() for line in sample_lines(path, SAMPLE_CHARACTERS)]
    rows = list(filter(None, lines))
    if rows and all(re.match(r'\{\s*"', line) for line in rows):
        raise InputError(f"{path} holds JSON lines: give the text in them, e.g. what `jq -r .text {path}` prints")
    if has_columns(lines):
        raise InputError(f"{path} has columns: give the sentences alone, which `python -m downstream sentences` prints")
    words = " ".join(rows).split()
    matches = _WITHOUT_SPACES.findall("".join(words))
    spaceless = 2 * sum(map(len, matches)) > sum(map(len, words))
    if warn and spaceless and len(matches) > _LONGEST_WORD * sum(map(bool, map(_WITHOUT_SPACES.search, words))):
        say(
            f"warning: {path} looks like text without spaces between words: put them there first, by a tool for the "
            "language",
            file=sys.stderr,
        )


def has_columns(lines: Iterable[str]) -> bool:
    """Whether lines are rows of columns: a word and its tags each, blank lines between sentences, or a table.

    Comments (`#`) do not count. Rows that follow each other have the same number of fields, divided by tabs, or by
    blanks where nearly all end in a tag.
    """
    rows = [line for line in lines if not line.startswith("#")]
    for divided, tagged in ("\t", False), (None, True):
        counts = [len(row.split(divided)) if row else 0 for row in rows]
        pairs = [(one, two) for one, two in pairwise(counts) if max(one, two) > 1 and min(one, two) > 0]
        alike = sum(one == two for one, two in pairs)
        tags = sum(_TAG.fullmatch(row.split()[-1]) is not None for row in rows if row)
        if (
            len(pairs) >= _FEWEST_PAIRS // (2 if divided and max(counts, default=0) > 2 else 1)
            and alike >= _LIKE_PAIRS * len(pairs)
            and (not tagged or tags >= _TAGGED_LINES * sum(map(bool, rows)))
        ):
            return True
    return False


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
            with_mark += times * bool(WITH_MARK.fullmatch(word))
    if with_mark > max(_FEW_WITH_MARK, _MANY_WITH_MARK * total):
        say(
            f"warning: {with_mark / total:.1%} of the words of {name} end in a comma or another mark, as in text that "
            "is not tokenised: give what `python -m data_scripts.tokenize --tokenised no` makes of it",
            file=sys.stderr,
        )
