"""Unsuitable text: does a file look like another thing than sentences of words with spaces between them?"""

import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from elmoc.errors import InputError
from elmoc.text.named_files import sample_lines

# characters of each file by which it is judged
SAMPLE_CHARACTERS = 10_000
# rows that a table has at least, and the share of lines that may have another number of tabs
_FEWEST_ROWS, _OTHER_LINES = 5, 0.05
# Scripts without spaces. A match is about as much text in each of them: a character of Chinese or Japanese, a row of
# katakana (long words from abroad), three characters of Thai or Lao, five of Tibetan, Burmese or Khmer.
_WITHOUT_SPACES = re.compile(
    "[\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[\u30a0-\u30ff]+|[\u0e00-\u0eff]{1,3}"
    "|[\u0f00-\u109f\u1780-\u17ff]{1,5}"
)
# matches that a word has at most, on average
_LONGEST_WORD = 4


def check_suitable(files: Iterable[Path]) -> None:
    """Warn on standard error of columns and of text without spaces; raise an `InputError` for JSON lines."""
    for file in files:
        lines = [line.strip() for line in sample_lines(file, SAMPLE_CHARACTERS) if line.strip()]
        if lines and all(re.match(r'\{\s*"', line) for line in lines):
            raise InputError(f"{file} holds JSON lines: give the text in them, e.g. what `jq -r .text {file}` prints")
        tabs = Counter(line.count("\t") for line in lines if not line.startswith("#"))
        columns, rows = next(iter(tabs.most_common(1)), (0, 0))
        words = " ".join(lines).split()
        matches = _WITHOUT_SPACES.findall("".join(words))
        if columns and rows >= _FEWEST_ROWS and tabs.total() - rows <= max(1, _OTHER_LINES * tabs.total()):
            looks_like = "columns with tabs between them: give the sentences alone (`python -m downstream sentences`)"
        elif 2 * sum(map(len, matches)) > sum(map(len, words)) and len(matches) > _LONGEST_WORD * sum(
            _WITHOUT_SPACES.search(word) is not None for word in words
        ):
            looks_like = "text without spaces between words: put them there first, by a tool for the language"
        else:
            continue
        print(f"warning: {file} looks like {looks_like}", file=sys.stderr)
