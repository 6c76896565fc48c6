"""Printing: how do lines, numbers and tables look on a terminal, and in Markdown?"""

import sys
from collections.abc import Sequence
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
class Column:
    """Cells of text under a header.

    header: the title of the column.
    cells: from top to bottom.
    right: whether they are aligned to the right, as numbers are.
    """

    header: str
    cells: Sequence[str]
    right: bool = False

    def as_text(self) -> list[str]:
        """The lines of the column, filled with blanks to one width."""
        width = max(len(cell) for cell in [self.header, *self.cells])
        lines = [self.header, "─" * width, *self.cells]
        if self.right:
            return [line.rjust(width) for line in lines]
        return [line.ljust(width) for line in lines]

    def as_markdown(self) -> list[str]:
        """The lines of the column in a table of Markdown, without bars between."""
        cells = [cell.replace("|", "\\|") for cell in self.cells]
        # The colon aligns a column to the right.
        return [self.header, "---:" if self.right else "---", *cells]


@dataclass(frozen=True)
class Table:
    """Columns with the same number of cells, under a title."""

    title: str
    columns: Sequence[Column]


def text_table(table: Table, *, markdown: bool = False) -> str:
    """The lines of a table under its title, for a terminal or as Markdown."""
    if markdown:
        columns = [column.as_markdown() for column in table.columns]
        rows = [f"| {' | '.join(cells)} |" for cells in zip(*columns, strict=True)]
        return f"**{table.title}**\n\n" + "\n".join(rows)
    columns = [column.as_text() for column in table.columns]
    rows = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    return f"{table.title}\n\n" + "\n".join(rows)
