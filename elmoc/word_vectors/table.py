"""Vector tables: the transformed word vectors of a lexicon on disk, how they are
written and opened.

vectors/NAME.npy     [V, E] float16 or float32, rows in the order of the lexicon,
transformed vectors/NAME.json    version, word vectors (origin, fingerprint), lexicon
fingerprint, dtype, zero rows, the kind of the
                     transform (`post_processing`) and its raw boundary vectors,
                     checksums; written last
vectors/NAME.post.npz   mean and matrix of the transform, where it has any
"""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import numpy as np
from msgspec import Meta

from elmoc.corpus import Corpus
from elmoc.errors import InputError, reading
from elmoc.files.arrays import all_finite, load_array
from elmoc.files.checksums import FileChecksum
from elmoc.files.records import read_record, write_record
from elmoc.files.writing import atomic_path, locked
from elmoc.word_vectors.sources import TransformKind, VectorSource, WordVectors
from elmoc.word_vectors.transform import VectorTransform

FORMAT = "elmoc-vectors"
VERSION = 1
Dtype = Literal["float16", "float32"]
DTYPES = get_args(Dtype)


@dataclass(frozen=True, kw_only=True)
class TableRecord:
    """What `vectors/NAME.json` holds.

    checksums: of `rows`, and of `transform` where it has a file.
    """

    size: Annotated[int, Meta(ge=1)]
    dtype: Dtype
    zero_rows: Annotated[int, Meta(ge=0)]
    origin: str
    vectors_fingerprint: str
    lexicon_fingerprint: str
    post_processing: TransformKind
    boundary_vectors: list[list[float]]
    checksums: dict[str, FileChecksum]

    def __post_init__(self) -> None:
        if [len(row) for row in self.boundary_vectors] != [self.size, self.size]:
            raise InputError(f"boundary_vectors must be 2 × {self.size} numbers")


class VectorTable:
    """A vector table opened for reading; `rows` is memory-mapped.

    Raises `InputError` when it is missing, truncated, damaged in its first or last
    block, of another version, made for another lexicon, or holds numbers that are not
    finite.

    files: its rows and, where there is one, the file of its transform.
    checksums: the checksums that it was written with, by file.
    """

    def __init__(self, corpus: Corpus, name: str) -> None:
        description = corpus.path / "vectors" / f"{name}.json"
        if not description.exists():
            raise InputError(
                f"{description} does not exist: `python -m data_scripts.build_vectors` builds the table"
            )
        record = read_record(description, TableRecord, format=FORMAT, version=VERSION)
        if record.lexicon_fingerprint != corpus.lexicon_fingerprint:
            raise InputError(
                f"{description} is of a table for another lexicon than {corpus.path} has"
            )
        self.description = description
        self.path = description.with_suffix(".npy")
        transform = description.with_suffix(".post.npz")
        self.files = (
            [self.path, transform] if record.post_processing != "none" else [self.path]
        )
        self.checksums = {
            file: record.checksums[what]
            for file, what in zip(self.files, ("rows", "transform"), strict=False)
        }
        for file, checksum in self.checksums.items():
            checksum.check_ends(file)
        self.rows = load_array(
            self.path, shape=(corpus.types, record.size), dtype=record.dtype, mmap=True
        )
        if not all_finite(self.rows):
            raise InputError(f"{self.path} holds numbers that are not finite")
        self.name = name
        self.size = record.size
        self.zero_rows = record.zero_rows
        self.source = VectorSource(
            record.origin,
            record.vectors_fingerprint,
            record.size,
            record.post_processing,
        )
        self._boundary = record.boundary_vectors

    @property
    def transform(self) -> VectorTransform:
        """What the table's vectors have been through, for words outside the table."""
        arrays = {}
        for file in self.files[1:]:
            with reading(file), np.load(file, allow_pickle=False) as stored:
                arrays = dict(stored)
        with (
            reading(self.description),
            np.errstate(over="ignore"),
        ):  # what is too large is not finite then
            return VectorTransform(np.array(self._boundary, dtype=np.float32), **arrays)


def write_vector_table(
    corpus: Corpus,
    name: str,
    *,
    rows: np.ndarray,
    vectors: WordVectors,
    transform: VectorTransform,
    post_processing: str,
) -> TableRecord:
    """Write `rows` [V, E] (transformed, float16 or float32) and their description;
    returns the description.

    `post_processing` is the name of the transform's kind. An older table of that name
    is there until the files of the new one are whole; a writer that is killed while
    they get their names leaves none, and never a mixture.
    """
    description = corpus.path / "vectors" / f"{name}.json"
    arrays = transform.arrays
    boundary = arrays.pop("boundary")
    files = {
        "rows": description.with_suffix(".npy"),
        "transform": description.with_suffix(".post.npz"),
    }
    with locked(description):
        with ExitStack() as stack:
            partial = {}
            for what in ("rows", "transform")[: 2 if arrays else 1]:
                partial[what] = stack.enter_context(atomic_path(files[what]))
                with open(partial[what], "wb") as file:
                    np.save(file, rows) if what == "rows" else np.savez(file, **arrays)  # type: ignore[arg-type]
            checksums = {what: FileChecksum.of(path) for what, path in partial.items()}
            description.unlink(missing_ok=True)
        if not arrays:
            files["transform"].unlink(missing_ok=True)
        record = TableRecord(
            size=rows.shape[1],
            dtype=str(rows.dtype),
            zero_rows=int((~rows.any(axis=1)).sum()),
            origin=vectors.origin,
            vectors_fingerprint=vectors.fingerprint,
            lexicon_fingerprint=corpus.lexicon_fingerprint,
            post_processing=post_processing,
            boundary_vectors=[[float(number) for number in row] for row in boundary],
            checksums=checksums,
        )
        write_record(description, record, format=FORMAT, version=VERSION)
    return record
