"""Columns on disk: rows of Parquet files and of Arrow files (of which a saved dataset
of Hugging Face consists), by pyarrow.
"""

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from elmoc.errors import InputError, reading
from elmoc.files.compression import AnyPath
from elmoc.text.reader import COMPRESSION, TextRange
from elmoc.text.rows import RowReader

# Rows that are in memory as Python's objects: one may be a book.
BATCH_ROWS = 256
# Bytes of a Parquet file that are read at once; without it a column of a group of rows.
_BUFFER_BYTES = 1 << 20
# How Arrow streams begin, and end when they are whole.
_STREAM = b"\xff\xff\xff\xff"
_STREAM_END = _STREAM + bytes(4)


class ColumnReader(RowReader):
    """Files of columns.

    kind: what errors call them.
    ending: of their names.
    beginnings: their first bytes, whatever they are called.
    """

    kind: str
    ending: str
    beginnings: tuple[bytes, ...]

    def takes(self, path: AnyPath) -> bool:
        """See `TextReader`."""
        with open(path, "rb") as file:
            start = file.read(6)
        return start.startswith(self.beginnings) or str(path).endswith(self.ending)

    def rows(self, text: TextRange) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """See `RowReader`; without a field, the columns that hold strings."""
        number = 0
        with reading(f"{text.path}, {self.kind},"):
            for batch in self.batches(os.fspath(text.path), text.field):
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    for row in batch.slice(start, BATCH_ROWS).to_pylist():
                        number += 1
                        yield number, row

    @abstractmethod
    def batches(self, path: str, field: str | None) -> Iterator[Any]:
        """Yield record batches of one column, or of all that hold strings."""


class Parquet(ColumnReader):
    """Parquet files."""

    kind = "a Parquet file"
    ending = ".parquet"
    beginnings = (b"PAR1",)

    def text_bytes(self, path: AnyPath) -> int:
        """See `TextReader`. Columns are compressed."""
        return int(os.stat(path).st_size * COMPRESSION)

    def batches(self, path: str, field: str | None) -> Iterator[Any]:
        """See `ColumnReader`."""
        from pyarrow import parquet

        with parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES) as file:
            columns = [field] if field else _string_columns(file.schema_arrow)
            yield from file.iter_batches(batch_size=BATCH_ROWS, columns=columns)


class ArrowFiles(ColumnReader):
    """Arrow's streams (`save_to_disk`) and files (Feather)."""

    kind = "an Arrow file"
    ending = ".arrow"
    beginnings = (_STREAM, b"ARROW1")

    def batches(self, path: str, field: str | None) -> Iterator[Any]:
        """See `ColumnReader`."""
        import pyarrow

        with pyarrow.memory_map(path) as source:
            is_stream = source.read(len(_STREAM)) == _STREAM
            source.seek(max(0, source.size() - len(_STREAM_END)))
            if is_stream and source.read() != _STREAM_END:
                raise InputError("its end is missing")
            source.seek(0)
            if is_stream:
                batches = pyarrow.ipc.open_stream(source)
            else:
                file = pyarrow.ipc.open_file(source)
                batches = map(file.get_batch, range(file.num_record_batches))
            for batch in batches:
                columns = [field] if field else _string_columns(batch.schema)
                yield batch.select(columns)


def _string_columns(schema: Any) -> list[str]:
    """The columns of a schema that hold strings, or lists of them."""
    return [each.name for each in schema if "string" in str(each.type)]
