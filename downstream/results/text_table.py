"""How are columns of text set as a table for a terminal and for Markdown?"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """Cells of text under a header; numbers are set to the right."""

    header: str
    cells: Sequence[str]
    to_right: bool = False

    @property
    def width(self) -> int:
        """That of the widest cell."""
        return max(map(len, (self.header, *self.cells)))

    def set(self, cell: str) -> str:
        """The cell, filled to the width."""
        return cell.rjust(self.width) if self.to_right else cell.ljust(self.width)


@dataclass(frozen=True)
class Grid:
    """A table: columns of the same number of cells under a title."""

    title: str
    columns: Sequence[Column]

    @property
    def width(self) -> int:
        """How wide the text is."""
        return sum(column.width + 2 for column in self.columns) - 2

    def text(self) -> str:
        """Columns filled with spaces, two of them between columns; a line under the header."""
        lines = [
            [column.set(column.header) for column in self.columns],
            ["─" * column.width for column in self.columns],
        ]
        lines += [[column.set(column.cells[row]) for column in self.columns] for row in self._rows]
        return "\n".join([self.title, "", *("  ".join(line).rstrip() for line in lines)])

    def markdown(self) -> str:
        """A table of pipes under a bold title."""
        lines = [[column.header for column in self.columns]]
        lines += [["---:" if column.to_right else "---" for column in self.columns]]
        lines += [[column.cells[row].replace("|", "\\|") for column in self.columns] for row in self._rows]
        return "\n".join([f"**{self.title}**", "", *(f"| {' | '.join(line)} |" for line in lines)])

    @property
    def _rows(self) -> range:
        return range(len(self.columns[0].cells))
