"""Vector tables: the transformed word vectors of a lexicon on disk, how they are written and opened.

vectors/NAME.npy     [V, E] float16 or float32, rows in the order of the lexicon, transformed
vectors/NAME.json    version, word vectors (origin, fingerprint), lexicon fingerprint, dtype, zero rows, the kind of the
                     transform (`post_processing`) and its raw boundary vectors, checksums; written last
vectors/NAME.post.npz   mean and matrix of the transform, where it has any
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.files.arrays import all_finite, load_array, load_arrays, write_array
from elmoc.files.checksums import FileChecksum
from elmoc.files.records import as_json, json_bytes, read_record
from elmoc.files.writing import atomic_path
from elmoc.settings import setting
from elmoc.word_vectors.sources import VectorSource, WordVectors
from elmoc.word_vectors.transform import TransformKind, VectorTransform

FORMAT = "elmoc-vectors"
VERSION = 1
DTYPES = ("float16", "float32")
ADVICE = "build the table again"
"""What to do about a table that is damaged."""


@dataclass(frozen=True, kw_only=True)
class TableRecord:
    """What `vectors/NAME.json` holds.

    checksums: of `rows`, and of `transform` where it has a file; none in tables from before there were checksums.
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
        self.path = corpus.path / "vectors" / f"{name}.npy"
        description = self.path.with_suffix(".json")
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
        files = {"rows": self.path} | ({} if kind.name == "none" else {"transform": transform_path(self.path)})
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
            raise InputError(f"{self.path.with_suffix('.json')}: {error}: {ADVICE}") from None


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

    `post_processing` is the name of the transform's kind.
    """
    path = corpus.path / "vectors" / f"{name}.npy"
    description, other = path.with_suffix(".json"), transform_path(path)
    arrays = transform.arrays
    boundary = arrays.pop("boundary")
    with atomic_path(description) as new_description, atomic_path(path) as new, atomic_path(other) as new_other:
        write_array(new, rows)
        with open(new_other, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        files = {"rows": new} | ({"transform": new_other} if arrays else {})
        record = TableRecord(
            size=rows.shape[1],
            dtype=str(rows.dtype),
            zero_rows=count_zero_rows(rows),
            origin=vectors.origin,
            vectors_fingerprint=vectors.fingerprint,
            lexicon_fingerprint=corpus.lexicon_fingerprint,
            post_processing=post_processing,
            boundary_vectors=[[float(number) for number in row] for row in boundary],
            checksums={what: FileChecksum.of(file) for what, file in files.items()},
        )
        content = json_bytes(description, as_json(record, format=FORMAT, version=VERSION))
        new_description.write_bytes(content)
        with open(new, "rb") as written:
            os.fsync(written.fileno())
        # all is on the disk and only has to be renamed, the description last: never is an old one there with new rows
        description.unlink(missing_ok=True)
    if not arrays:
        other.unlink()
    return record


def count_zero_rows(rows: np.ndarray) -> int:
    """How many rows are all zeros."""
    return int((~rows.any(axis=1)).sum())


def transform_path(path: Path) -> Path:
    """Where the mean and matrix of the table at `path` are kept."""
    return path.with_suffix(".post.npz")
