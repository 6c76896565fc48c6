"""Printing: how do lines, numbers and tables look on a terminal, and in Markdown?"""

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from elmoc.errors import say


def say_lines(text: str) -> None:
    """Print text of several lines, each as `say` prints it."""
    for line in text.split("\n"):
        say(line)


def note(text: str) -> None:
    """Print a line to standard error: something that a user may not expect."""
    say(f"note: {text}", file=sys.stderr)


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number of things: `1 run`, `2,000 runs`.

    Args:
        count: the number.
        noun: the singular.
        plural: the noun with an s, unless it is given.
    """
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {plural or f'{noun}s'}"


@dataclass(frozen=True)
class Table:
    """Rows of cells of text under a title.

    headers: the titles of the columns.
    rows: a cell for each column.
    right: headers of the columns that are aligned to the right, as numbers are.
    """

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Collection[str] = ()


def text_table(table: Table, *, markdown: bool = False) -> str:
    """The lines of a table under its title, for a terminal or as Markdown."""
    if markdown:
        # The colon aligns a column to the right.
        rules = ["---:" if each in table.right else "---" for each in table.headers]
        lines = [f"| {' | '.join(cells)} |" for cells in (table.headers, rules)]
        for row in table.rows:
            cells = [cell.replace("|", "\\|") for cell in row]
            lines.append(f"| {' | '.join(cells)} |")
        return f"**{table.title}**\n\n" + "\n".join(lines)
    columns = []
    for header, *cells in zip(table.headers, *table.rows, strict=True):
        width = max(map(len, [header, *cells]))
        side = ">" if header in table.right else "<"
        columns.append(
            [f"{each:{side}{width}}" for each in (header, "─" * width, *cells)]
        )
    rows = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    return f"{table.title}\n\n" + "\n".join(rows)
