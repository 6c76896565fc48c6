"""Plain text: lines, with a blank one between documents."""

import re
from collections.abc import Iterator

from elmoc.errors import InputError
from elmoc.files.compression import AnyPath
from elmoc.files.text import read_lines
from elmoc.text.reader import (
    SAMPLE_CHARACTERS,
    TextDocument,
    TextRange,
    TextReader,
    first_lines,
    until_blank,
)

# A row of columns: fields divided by tabs, or a tag of an entity or a chunk at its end.
_COLUMNS = re.compile(r"\t|\s(?:O|[BIES]-\S+)$")


class PlainText(TextReader):
    """Lines of text, plain or compressed."""

    document_end = re.compile(rb"\n[ \t\r]*\n")

    def takes(self, path: AnyPath) -> bool:
        """Whatever is of no other kind is text."""
        return True

    def read(self, text: TextRange) -> Iterator[TextDocument]:
        """See `TextReader`. A part of a file begins a document."""
        lines = enumerate(read_lines(text.path, text.start, text.end), 1)
        for number, line in lines:
            document = until_blank(line, lines)
            yield TextDocument(str(text.path), document, line=number)
            # Lines that the caller left belong to this document all the same.
            for _ in document:
                pass

    def check(self, text: TextRange, *, warn: bool = True) -> None:
        """See `TextReader`. Columns are refused."""
        sample = first_lines(read_lines(text.path), SAMPLE_CHARACTERS)
        rows = [line.strip() for line in sample if line.strip()]
        # Comments of CoNLL-U have no columns.
        rows = [row for row in rows if not row.startswith("#")]
        if 2 * len(list(filter(_COLUMNS.search, rows))) > len(rows):
            raise InputError(
                f"{text.path} has columns: give the sentences alone, which `python -m "
                "downstream sentences` prints"
            )
        super().check(text, warn=warn)
