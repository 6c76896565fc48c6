"""Vector tables: the transformed word vectors of a lexicon on disk, how they are written and opened.

vectors/NAME.npy     [V, E] float16 or float32, rows in the order of the lexicon, transformed
vectors/NAME.json    version, word vectors (origin, fingerprint), lexicon fingerprint, dtype, zero rows, the kind of the
                     transform (`post_processing`) and its raw boundary vectors, checksums; written last
vectors/NAME.post.npz   mean and matrix of the transform, where it has any

A table that replaces another is written as `NAME@new.npy` and `NAME@new.post.npz`, which its description names until
they have got the names of the old files: at every moment the description is that of files which are there.
"""

import errno
import os
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.files.arrays import all_finite, load_array, load_arrays
from elmoc.files.checksums import FileChecksum
from elmoc.files.locks import locked
from elmoc.files.records import read_record, write_record
from elmoc.files.writing import atomic_path
from elmoc.settings import setting
from elmoc.word_vectors.sources import VectorSource, WordVectors
from elmoc.word_vectors.transform import TransformKind, VectorTransform

FORMAT = "elmoc-vectors"
VERSION = 1
DTYPES = ("float16", "float32")
ADVICE = "build the table again"
"""What to do about a table that is damaged."""
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


@dataclass(frozen=True, kw_only=True)
class TableRecord:
    """What `vectors/NAME.json` holds.

    checksums: of `rows`, and of `transform` where it has a file; none in tables from before there were checksums.
    aside: its files are still called `NAME@new`: the writer has not come to its end.
    """

    size: int = setting(least=1)
    dtype: str = setting(choices=DTYPES)
    zero_rows: int = setting(least=0)
    origin: str
    vectors_fingerprint: str
    lexicon_fingerprint: str
    post_processing: str
    boundary_vectors: list[list[float]]
    checksums: dict[str, FileChecksum] = field(default_factory=dict)
    aside: bool = False

    def __post_init__(self) -> None:
        TransformKind.parse(self.post_processing)
        if [len(row) for row in self.boundary_vectors] != [self.size, self.size]:
            raise InputError(f"boundary_vectors must be 2 × {self.size} numbers")


class VectorTable:
    """A vector table opened for reading; `rows` is memory-mapped.

    Raises `InputError` when it is missing, truncated, damaged in its first or last block, of another version, made for
    another lexicon, or holds numbers that are not finite.

    files: its rows and, where there is one, the file of its transform.
    checksums: those that it was written with, by file; none before there were checksums.
    """

    def __init__(self, corpus: Corpus, name: str) -> None:
        description = corpus.path / "vectors" / f"{name}.json"
        if not description.exists():
            raise InputError(
                f"{description} does not exist: build the table with `python -m data_scripts.build_vectors "
                f"{corpus.path} VECTORS --name {name}`"
            )
        record = read_record(description, TableRecord, format=FORMAT, version=VERSION, advice=ADVICE)
        if record.lexicon_fingerprint != corpus.lexicon_fingerprint:
            raise InputError(f"{description} is of a table for another lexicon than that of {corpus.path}: {ADVICE}")
        kind = TransformKind.parse(record.post_processing)
        self._shapes = kind.shapes(record.size)
        files = table_files(description, aside=record.aside)
        if kind.name == "none":
            del files["transform"]
        self.description, self.path = description, files["rows"]
        self.files = tuple(files.values())
        self.checksums = {files[what]: record.checksums[what] for what in files if what in record.checksums}
        for file, checksum in self.checksums.items():
            checksum.check_ends(file, advice=ADVICE)
        shape = (corpus.types, record.size)
        self.rows = load_array(self.path, shape=shape, dtype=record.dtype, mmap=True, advice=ADVICE)
        if not all_finite(self.rows):
            raise InputError(f"{self.path} holds numbers that are not finite: {ADVICE}")
        self.name = name
        self.size = record.size
        self.zero_rows = record.zero_rows
        self.source = VectorSource(record.origin, record.vectors_fingerprint, record.size, record.post_processing)
        self._boundary = record.boundary_vectors

    @property
    def transform(self) -> VectorTransform:
        """What the table's vectors have been through, for words outside the table."""
        shapes = {name: shape for name, shape in self._shapes.items() if name != "boundary"}
        arrays = load_arrays(self.files[1], shapes=shapes, dtype="float32", advice=ADVICE) if shapes else {}
        try:
            with np.errstate(over="ignore"):  # what is too large is not finite then
                return VectorTransform(np.array(self._boundary, dtype=np.float32), **arrays)
        except InputError as error:  # of the boundary vectors, which the description has
            raise InputError(f"{self.description}: {error}: {ADVICE}") from None


def write_vector_table(
    corpus: Corpus,
    name: str,
    *,
    rows: np.ndarray,
    vectors: WordVectors,
    transform: VectorTransform,
    post_processing: str,
) -> TableRecord:
    """Write `rows` [V, E] (transformed, float16 or float32) and their description; returns the description.

    `post_processing` is the name of the transform's kind. An older table of that name is there until the new one is.
    """
    description = corpus.path / "vectors" / f"{name}.json"
    arrays = transform.arrays
    boundary = arrays.pop("boundary")
    with locked(description):
        aside = description.exists() and not _is_aside(description)
        try:
            record = TableRecord(
                size=rows.shape[1],
                dtype=str(rows.dtype),
                zero_rows=count_zero_rows(rows),
                origin=vectors.origin,
                vectors_fingerprint=vectors.fingerprint,
                lexicon_fingerprint=corpus.lexicon_fingerprint,
                post_processing=post_processing,
                boundary_vectors=[[float(number) for number in row] for row in boundary],
                checksums=_write_arrays(table_files(description, aside=aside), rows, arrays),
                aside=aside,
            )
            write_record(description, record, format=FORMAT, version=VERSION)  # now it is the table
            if aside and _linked_in_place(description, record):
                record = replace(record, aside=False)
                write_record(description, record, format=FORMAT, version=VERSION)
        finally:
            for file in table_files(description, aside=not _is_aside(description)).values():
                file.unlink(missing_ok=True)
    return record


def table_files(description: Path, *, aside: bool) -> dict[str, Path]:
    """The files of `rows` and `transform` (which not every table has) that a description has beside it."""
    stem = f"{description.stem}@new" if aside else description.stem
    return {
        "rows": description.with_name(f"{stem}.npy"),
        "transform": description.with_name(f"{stem}.post.npz"),
    }


def _is_aside(description: Path) -> bool:
    """Whether the table that is there, if there is one, has files with names of their own."""
    try:
        return read_record(description, TableRecord, format=FORMAT, version=VERSION, advice=ADVICE).aside
    except InputError:  # it is missing, or damaged and about to be replaced
        return False


def _write_arrays(files: dict[str, Path], rows: np.ndarray, arrays: dict[str, np.ndarray]) -> dict[str, FileChecksum]:
    """Write the files of a table, all or none; returns their checksums."""
    with ExitStack() as stack:
        partial = {
            what: stack.enter_context(atomic_path(files[what])) for what in ("rows", "transform")[: 1 + bool(arrays)]
        }
        with open(partial["rows"], "wb") as file:
            np.save(file, rows)
        if arrays:
            with open(partial["transform"], "wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
        return {what: FileChecksum.of(path) for what, path in partial.items()}


def _linked_in_place(description: Path, record: TableRecord) -> bool:
    """Give the files of a table that is aside the names of the old ones, too; False where there are no hard links."""
    new, old = (table_files(description, aside=aside) for aside in (True, False))
    try:
        for what in record.checksums:
            with atomic_path(old[what]) as partial:
                partial.unlink()
                os.link(new[what], partial)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return False
    if "transform" not in record.checksums:
        old["transform"].unlink(missing_ok=True)
    return True


def count_zero_rows(rows: np.ndarray) -> int:
    """How many rows are all zeros."""
    return int((~rows.any(axis=1)).sum())
