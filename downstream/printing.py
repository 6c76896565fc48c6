"""Printing: what goes to a terminal, and how do columns of text look there, and in
Markdown?
"""

import sys
from collections.abc import Sequence
from typing import NamedTuple

from elmoc.errors import printable


def say(text: str, *, note: bool = False) -> None:
    """Print what may be from files, such as labels and names: characters that steer a
    terminal are written as escapes.

    note  whether it goes to standard error
    """
    shown = printable(text)
    print(
        f"note: {shown}" if note else shown,
        file=sys.stderr if note else sys.stdout,
        flush=True,
    )


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number of things: `1 run`, `2,000 runs`; the `plural` is that with an s unless
    it is given.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


class Column(NamedTuple):
    """Cells of text under a header; numbers are aligned to the right."""

    header: str
    cells: Sequence[str]
    right: bool = False


class Table(NamedTuple):
    """Columns of the same number of cells under a title."""

    title: str
    columns: Sequence[Column]


def text_table(table: Table, *, markdown: bool = False) -> str:
    """The table under its title: columns filled with spaces, or Markdown's pipes."""
    filled = []
    for header, cells, right in table.columns:
        if markdown:
            filled.append(
                [
                    header,
                    "---:" if right else "---",
                    *(cell.replace("|", "\\|") for cell in cells),
                ]
            )
        else:
            width = max(map(len, (header, *cells)))
            fill = str.rjust if right else str.ljust
            filled.append(
                [
                    fill(header, width),
                    "─" * width,
                    *(fill(cell, width) for cell in cells),
                ]
            )
    lines = list(zip(*filled, strict=True))
    if markdown:
        return "\n".join(
            [f"**{table.title}**", "", *(f"| {' | '.join(cells)} |" for cells in lines)]
        )
    return "\n".join([table.title, "", *("  ".join(cells).rstrip() for cells in lines)])
