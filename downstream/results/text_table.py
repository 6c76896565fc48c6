"""Text tables: columns of text as a terminal and as Markdown show them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """Cells of text under a header; numbers are aligned to the right."""

    header: str
    cells: Sequence[str]
    right: bool = False

    @property
    def width(self) -> int:
        """That of the widest cell."""
        return max(map(len, (self.header, *self.cells)))

    def fill(self, cell: str) -> str:
        """The cell, filled with spaces to the width."""
        return cell.rjust(self.width) if self.right else cell.ljust(self.width)


@dataclass(frozen=True)
class TextTable:
    """Columns of the same number of cells under a title."""

    title: str
    columns: Sequence[Column]

    @property
    def width(self) -> int:
        """How wide the text is."""
        return sum(column.width + 2 for column in self.columns) - 2

    def text(self) -> str:
        """Columns filled with spaces, two of them between columns; a line under the header."""
        columns = [[each.fill(each.header), "─" * each.width, *map(each.fill, each.cells)] for each in self.columns]
        return "\n".join([self.title, "", *("  ".join(cells).rstrip() for cells in zip(*columns, strict=True))])

    def markdown(self) -> str:
        """A table of pipes under a bold title."""
        columns = [
            [each.header, "---:" if each.right else "---", *(cell.replace("|", "\\|") for cell in each.cells)]
            for each in self.columns
        ]
        return "\n".join(
            [f"**{self.title}**", "", *(f"| {' | '.join(cells)} |" for cells in zip(*columns, strict=True))]
        )
