"""Suitable text: whether a file that is taken for tokenised text looks like something
else, judged by its beginning.
"""

import re
import sys
from collections.abc import Iterable

from elmoc.batches import buffered
from elmoc.errors import InputError, say
from elmoc.files.text import read_lines
from elmoc.text.named_files import AnyPath
from elmoc.text.tokenizer import looks_raw

# Characters of each file by which it is judged: some hundred lines.
SAMPLE_CHARACTERS = 10_000
# A row of columns: fields divided by tabs, or a tag of an entity or a chunk at its end.
_COLUMNS = re.compile(r"\t|\s(?:O|[BIES]-\S+)$")


def check_suitable(path: AnyPath, *, warn: bool = True) -> None:
    """Look at the beginning of a file of text.

    Args:
        path: of the file.
        warn: whether raw text is warned of on standard error; it may be meant.

    Raises:
        InputError: JSON lines, or columns.
    """
    sample = first_lines(read_lines(path), SAMPLE_CHARACTERS)
    rows = [line.strip() for line in sample if line.strip()]
    if rows and all(re.match(r'\{\s*"', row) for row in rows):
        raise InputError(
            f"{path} holds JSON lines: give the text in them, e.g. what "
            f"`jq -r .text {path}` prints"
        )
    # Comments of CoNLL-U have no columns.
    rows = [row for row in rows if not row.startswith("#")]
    if 2 * len(list(filter(_COLUMNS.search, rows))) > len(rows):
        raise InputError(
            f"{path} has columns: give the sentences alone, which `python -m "
            "downstream sentences` prints"
        )
    if warn and looks_raw("\n".join(sample)):
        say(
            f"warning: {path} looks like text that is not tokenised, as most of its "
            "commas and the like touch a word: give what `python -m "
            "data_scripts.tokenize` makes of it",
            file=sys.stderr,
        )


def first_lines(lines: Iterable[str], characters: int) -> list[str]:
    """The first lines of a text, up to this number of characters; a longer line is cut
    to it.
    """
    beginning: list[str] = next(buffered(lines, len, most=characters), [])
    return [line[:characters] for line in beginning]
