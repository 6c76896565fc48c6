"""Files of columns: rows of Parquet files, and of Arrow's streams, of which a saved
dataset of Hugging Face consists, by pyarrow.
"""

import os
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from elmoc.errors import InputError, reading
from elmoc.files.compression import PARQUET, AnyPath, first_bytes
from elmoc.text.reader import TextRange
from elmoc.text.rows import RowReader

# How Arrow's streams begin, and how they end.
STREAM = b"\xff\xff\xff\xff"
_STREAM_END = STREAM + bytes(4)
# Rows that are in memory as Python's objects: one may be a book.
_BATCH_ROWS = 256
# Bytes of a Parquet file that are read at once.
_BUFFER_BYTES = 1 << 20


class ColumnFiles(RowReader):
    """Parquet files and Arrow's streams, by their first bytes or their names."""

    def takes(self, path: AnyPath) -> bool:
        """See `TextReader`."""
        is_known = first_bytes(path, 4) in (PARQUET, STREAM)
        return is_known or str(path).endswith((".parquet", ".arrow"))

    def rows(self, text: TextRange) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """See `RowReader`."""
        kind = "Parquet" if is_parquet(text.path) else "Arrow"
        batches = _parquet_batches if kind == "Parquet" else _arrow_batches
        found = batches(os.fspath(text.path), text.field)
        with reading(f"{text.path} ({kind})"):
            try:
                rows = chain.from_iterable(batch.to_pylist() for batch in found)
                yield from enumerate(rows, 1)
            except MemoryError as error:
                raise InputError(
                    f"{error}: it is damaged, or its rows do not fit into memory"
                ) from error


def is_parquet(path: AnyPath) -> bool:
    """Whether a file is one of Parquet, or is called so."""
    return first_bytes(path, 4) == PARQUET or str(path).endswith(".parquet")


def _parquet_batches(path: str, field: str | None) -> Iterator[Any]:
    """Yield the batches of a column, or of all columns."""
    from pyarrow import parquet

    # With `pre_buffer` a group of rows is read at once, which is often the whole file.
    with parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
        columns = _columns(file.schema_arrow, field)
        yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=columns)


def _arrow_batches(path: str, field: str | None) -> Iterator[Any]:
    """See `_parquet_batches`."""
    import pyarrow

    # A damaged size is not read into memory.
    with pyarrow.memory_map(path) as source:
        source.seek(max(0, source.size() - len(_STREAM_END)))
        # The library takes a stream that is cut between batches for a whole one.
        if source.read() != _STREAM_END:
            raise InputError("its end is missing")
        source.seek(0)
        for batch in pyarrow.ipc.open_stream(source):
            chosen = batch.select(_columns(batch.schema, field))
            # Of a damaged file, places behind its end may be read.
            chosen.validate(full=True)
            for start in range(0, chosen.num_rows, _BATCH_ROWS):
                yield chosen.slice(start, _BATCH_ROWS)


def _columns(schema: Any, field: str | None) -> list[str]:
    """The column, or all that can be text or labels: dates may have no Python type."""
    names = [each.name for each in schema if "time" not in str(each.type)]
    return [field] if field else names
