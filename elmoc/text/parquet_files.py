"""Parquet files: their rows, by pyarrow."""

import os
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from elmoc.errors import InputError, reading
from elmoc.files.compression import PARQUET, AnyPath, first_bytes
from elmoc.text.reader import TextRange
from elmoc.text.rows import RowReader

# Rows that are in memory as Python's objects: one may be a book.
_BATCH_ROWS = 256
# Bytes of a file that are read at once.
_BUFFER_BYTES = 1 << 20


class ParquetFiles(RowReader):
    """Parquet files, by their first bytes or their names."""

    def takes(self, path: AnyPath) -> bool:
        """See `TextReader`."""
        return first_bytes(path, 4) == PARQUET or str(path).lower().endswith(".parquet")

    def text_bytes(self, path: AnyPath) -> int:
        """See `TextReader`: of its columns of strings, before they are compressed. The
        numbers of an embedding beside a text are none.
        """
        from pyarrow import parquet

        groups = parquet.read_metadata(os.fspath(path)).to_dict()["row_groups"]
        columns = chain.from_iterable(group["columns"] for group in groups)
        return sum(
            column["total_uncompressed_size"]
            for column in columns
            if column["physical_type"] == "BYTE_ARRAY"
        )

    def rows(self, text: TextRange) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """See `RowReader`."""
        with reading(f"{text.path} (Parquet)"):
            try:
                yield from enumerate(_rows(os.fspath(text.path), text.field), 1)
            except MemoryError as error:
                raise InputError(
                    f"{error}: it is damaged, or its rows do not fit into memory"
                ) from error


def _rows(path: str, field: str | None) -> Iterator[Any]:
    """Yield the rows, of a column or of all that can be text or labels."""
    from pyarrow import parquet

    # With `pre_buffer` a group of rows is read at once, which is often the whole file.
    with parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
        # Dates may have no Python type.
        names = [
            each.name for each in file.schema_arrow if "time" not in str(each.type)
        ]
        columns = [field] if field else names
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
            yield from batch.to_pylist()
