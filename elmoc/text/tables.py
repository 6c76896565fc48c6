"""Tables: rows of comma- or tab-separated text, whose first line names the columns."""

import csv
from collections.abc import Iterator, Mapping

from elmoc.errors import InputError
from elmoc.files.compression import AnyPath, unpacked_name
from elmoc.files.text import MAX_LINE_BYTES, read_lines
from elmoc.text.reader import TextRange
from elmoc.text.rows import RowReader


class Tables(RowReader):
    """Files called `.csv` or `.tsv`, compressed or not."""

    unit = "line"

    def takes(self, path: AnyPath) -> bool:
        """See `TextReader`."""
        return unpacked_name(path).endswith((".csv", ".tsv"))

    def rows(self, text: TextRange) -> Iterator[tuple[int, Mapping[str, str]]]:
        """See `RowReader`."""
        path = text.path
        separator = "\t" if unpacked_name(path).endswith(".tsv") else ","
        return read_table(path, separator)


def read_table(path: AnyPath, separator: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a table, each with the number of the line where it begins.

    Cells may stand within quotation marks, and hold line ends then; but where marks
    would join lines that have all of their cells, they are a part of the text.

    Raises:
        InputError: a row with another number of cells than the first line, which names
            the columns.
    """
    # A cell may be a book.
    csv.field_size_limit(max(MAX_LINE_BYTES, csv.field_size_limit()))
    quoting = csv.QUOTE_NONE if _marks_are_text(path, separator) else csv.QUOTE_MINIMAL
    lines = (f"{line}\n" for line in read_lines(path))
    table = csv.reader(lines, delimiter=separator, quoting=quoting, strict=True)
    names: list[str] = []
    while True:
        line = table.line_num + 1
        try:
            cells = next(table, None)
        except csv.Error as error:
            raise InputError(
                f"{path}, line {line}: {error}: a quotation mark within a cell in "
                "quotation marks is written twice"
            ) from None
        if cells is None:
            return
        # A blank line has none.
        if cells and names:
            if len(cells) != len(names):
                raise InputError(
                    f"{path}, line {line} has {len(cells)} cells, the first line "
                    f"{len(names)}"
                )
            yield line, dict(zip(names, cells, strict=True))
        names = names or cells
        if any(name.isdigit() for name in names):
            raise InputError(
                f"{path} has a number in its first line: write a line with the names "
                "of the columns before it"
            )


def _marks_are_text(path: AnyPath, separator: str) -> bool:
    """Whether quotation marks enclose no cells: each line has as many cells as the
    first, and one of them could not end within marks.
    """
    width = 0
    is_odd = False
    for line in read_lines(path):
        width = width or line.count(separator)
        if line.count(separator) != width or not width:
            return False
        is_odd = is_odd or not _is_whole(line, separator)
    return is_odd


def _is_whole(line: str, separator: str) -> bool:
    """Whether cells within quotation marks end in their line."""
    if f'{separator}"' not in f"{separator}{line}":
        return True
    try:
        return len(next(csv.reader([line], delimiter=separator, strict=True))) > 0
    except csv.Error:
        return False
