"""Printing: how do lines, numbers and tables look?"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tabulate import tabulate

from elmoc.errors import say


def say_lines(text: str) -> None:
    """Print text of several lines, each as `say` prints it."""
    for line in text.split("\n"):
        say(line)


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number of things: `1 run`, `2,000 runs`.

    Args:
        count: the number.
        noun: the singular.
        plural: the noun with an s, unless it is given.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


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


def text_table(table: Table) -> str:
    """The lines of a table in Markdown, under its title."""
    aligned = ["right" if each in table.right else "left" for each in table.headers]
    # A bar would begin a cell.
    rows = [[cell.replace("|", "\\|") for cell in row] for row in table.rows]
    made = tabulate(
        rows,
        table.headers,
        tablefmt="pipe",
        colalign=aligned,
        disable_numparse=True,
    )
    return f"**{table.title}**\n\n{made}"
