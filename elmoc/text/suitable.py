"""Suitable text: whether a file that is taken for tokenised text looks like something
else, judged by its beginning.

JSON lines and columns are refused. Text without spaces between words, and words with
punctuation attached, are only warned of: they may be meant.
"""

import re
import sys
from collections.abc import Iterable
from itertools import pairwise

from elmoc.corpus import BEGIN, END
from elmoc.errors import InputError, say
from elmoc.files.text import read_lines
from elmoc.text.named_files import AnyPath
from elmoc.text.tokenizer import WITH_MARK

# Characters of each file by which it is judged: some hundred lines.
SAMPLE_CHARACTERS = 10_000
# Pairs of lines that follow each other, at least, before they are called columns. In a
# table of three fields or more half as many do: text has hardly two tabs in a line.
_FEWEST_PAIRS = 4
# The share of pairs with the same number of fields in a file of columns.
_LIKE_PAIRS = 0.95
# The share of lines that end in a tag, where blanks divide the fields.
_TAGGED_LINES = 0.8
# Tags of entities and chunks, brackets, numbers of heads and chains, parts of speech.
_TAG = re.compile(
    r"O|[BIESMLU]-\S+|[-_*]|\(?\S*\*\)*|\(?\d+\)?(\|\S+)?|-?\d+\.\d+|[A-Z]{1,5}\$?"
)
# Scripts without spaces. A match is about as much text in each of them: a character of
# Chinese or Japanese, a row of katakana (long words from abroad), three characters of
# Thai or Lao, five of Tibetan, Burmese or Khmer.
_WITHOUT_SPACES = re.compile(
    "[\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    "|[\u30a0-\u30ff]+"
    "|[\u0e00-\u0eff]{1,3}"
    "|[\u0f00-\u109f\u1780-\u17ff]{1,5}"
)
# Matches of a word on average, at most.
_LONGEST_WORD = 4
# Text is called raw from this share of words with a mark on, where it is about a tenth;
# in tokenised text it is near nothing.
_MANY_WITH_MARK = 0.01
# Words with a mark that may be names (Yahoo!) in a text of any length.
_FEW_WITH_MARK = 2


def check_suitable(path: AnyPath, *, warn: bool = True) -> None:
    """Look at the beginning of a file of text.

    Args:
        path: of the file.
        warn: whether text without spaces is told of on standard error.

    Raises:
        InputError: JSON lines or columns.
    """
    sample = first_lines(read_lines(path), SAMPLE_CHARACTERS)
    lines = [line.strip() for line in sample]
    rows = [line for line in lines if line]
    if rows and all(re.match(r'\{\s*"', row) for row in rows):
        raise InputError(
            f"{path} holds JSON lines: give the text in them, e.g. what "
            f"`jq -r .text {path}` prints"
        )
    if has_columns(lines):
        raise InputError(
            f"{path} has columns: give the sentences alone, which `python -m "
            "downstream sentences` prints"
        )
    if warn and _lacks_spaces(" ".join(rows).split()):
        say(
            f"warning: {path} looks like text without spaces between words: put them "
            "there first, by a tool for the language",
            file=sys.stderr,
        )


def _lacks_spaces(words: list[str]) -> bool:
    """Whether most characters are of a script without spaces, and words are too long
    to be divided.
    """
    matches = _WITHOUT_SPACES.findall("".join(words))
    if 2 * sum(map(len, matches)) <= sum(map(len, words)):
        return False
    with_match = sum(1 for word in words if _WITHOUT_SPACES.search(word))
    return len(matches) > _LONGEST_WORD * with_match


def has_columns(lines: Iterable[str]) -> bool:
    """Whether lines are rows of columns: a word and its tags each, blank lines between
    sentences, or a table.

    Comments (`#`) do not count. Rows that follow each other have the same number of
    fields, divided by tabs, or by blanks where nearly all end in a tag.
    """
    rows = [line for line in lines if not line.startswith("#")]
    fields_by_tabs = [len(row.split("\t")) if row else 0 for row in rows]
    fewest = _FEWEST_PAIRS
    if max(fields_by_tabs, default=0) > 2:
        fewest = _FEWEST_PAIRS // 2
    if _are_alike(fields_by_tabs, fewest):
        return True
    words = [row.split() for row in rows if row]
    tagged = sum(1 for row in words if _TAG.fullmatch(row[-1]))
    fields_by_blanks = [len(row.split()) for row in rows]
    return tagged >= _TAGGED_LINES * len(words) and _are_alike(
        fields_by_blanks, _FEWEST_PAIRS
    )


def _are_alike(fields: list[int], fewest: int) -> bool:
    """Whether enough rows that follow each other have as many fields, and more than
    one; 0 stands for a blank row.
    """
    pairs = [pair for pair in pairwise(fields) if min(pair) > 0 and max(pair) > 1]
    alike = sum(1 for one, two in pairs if one == two)
    return len(pairs) >= fewest and alike >= _LIKE_PAIRS * len(pairs)


def first_lines(lines: Iterable[str], characters: int) -> list[str]:
    """The first lines of a text, up to this number of characters; a longer line is cut
    to it.
    """
    sample: list[str] = []
    found = 0
    for line in lines:
        sample.append(line[:characters])
        found += len(line)
        if found >= characters:
            break
    return sample


def warn_of_raw_text(name: object, words: Iterable[tuple[str, int]]) -> None:
    """Warn on standard error where a text looks raw, as many of its words have a mark
    attached.

    Args:
        name: of the text.
        words: each with how many times it occurs.
    """
    total = 0
    with_mark = 0
    for word, times in words:
        if word in (BEGIN, END):
            continue
        total += times
        if WITH_MARK.fullmatch(word):
            with_mark += times
    if with_mark > max(_FEW_WITH_MARK, _MANY_WITH_MARK * total):
        say(
            f"warning: {with_mark / total:.1%} of the words of {name} end in a comma "
            "or another mark, as in text that is not tokenised: give what "
            "`python -m data_scripts.tokenize --tokenised no` makes of it",
            file=sys.stderr,
        )
