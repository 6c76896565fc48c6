"""Vector tables: the transformed word vectors of a lexicon on disk, how they are
written and opened.

    vectors/NAME.npy        [V, E] float16 or float32, transformed, in the order of the
                            lexicon
    vectors/NAME.json       `TableRecord`; written last
    vectors/NAME.post.npz   the transform: vectors of `<s>` and `</s>`, mean, matrix
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from elmoc.corpus import Corpus
from elmoc.errors import InputError, reading
from elmoc.files.arrays import all_finite, check_array, load_array
from elmoc.files.checksums import FileChecksum
from elmoc.files.records import read_record, write_record
from elmoc.files.writing import atomic_path, locked, remove
from elmoc.word_vectors.sources import TransformKind, VectorSource, WordVectors
from elmoc.word_vectors.transform import VectorTransform

FORMAT = "elmoc-vectors"
VERSION = 3
Dtype = Literal["float16", "float32"]


@dataclass(frozen=True, kw_only=True)
class TableRecord:
    """What `vectors/NAME.json` holds.

    vectors: what the rows are made of.
    checksums: of the other files, by name.
    """

    dtype: Dtype
    zero_rows: Annotated[int, Meta(ge=0)]
    vectors: VectorSource
    lexicon_fingerprint: str
    checksums: dict[str, FileChecksum]


class VectorTable:
    """A vector table opened for reading; `rows` is memory-mapped.

    transform: what its vectors have been through, for words outside the table.

    Raises:
        InputError: it is missing, truncated, damaged in its first or last block, of
            another version, made for another lexicon, or holds numbers that are not
            finite.
    """

    def __init__(self, corpus: Corpus, name: str) -> None:
        description = corpus.path / "vectors" / f"{name}.json"
        if not description.exists():
            raise InputError(
                f"{description} does not exist: `python -m data_scripts.build_vectors` "
                "builds the table"
            )
        record = read_record(description, TableRecord, format=FORMAT, version=VERSION)
        if record.lexicon_fingerprint != corpus.record.lexicon_fingerprint:
            raise InputError(
                f"{description} is of a table for another lexicon than {corpus.path} "
                "has"
            )
        self.name = name
        self.path = description.with_suffix(".npy")
        self.zero_rows = record.zero_rows
        self.source = record.vectors
        self.size = self.source.size
        transform_file = self.path.with_suffix(".post.npz")
        for file in (self.path, transform_file):
            with reading(description):
                checksum = record.checksums[file.name]
            checksum.check_ends(file)
        self.rows = load_array(
            self.path,
            shape=(corpus.types, self.size),
            dtype=record.dtype,
            mmap=True,
        )
        if not all_finite(self.rows):
            raise InputError(f"{self.path} holds numbers that are not finite")
        with reading(transform_file), np.load(transform_file) as stored:
            self.transform = VectorTransform(**stored)
            check_array(
                "boundary vectors", self.transform.boundary, np.float32, (2, self.size)
            )


def write_vector_table(
    corpus: Corpus,
    name: str,
    *,
    rows: np.ndarray,
    vectors: WordVectors,
    transform: VectorTransform,
    post_processing: TransformKind,
) -> None:
    """Write a vector table.

    An older table of that name is there until the files of the new one are whole; a
    writer that is killed while they get their names leaves none, and never a mixture.

    Args:
        corpus: whose lexicon the rows are of.
        name: of the table.
        rows: [V, E], transformed, float16 or float32.
        vectors: what the rows are made of.
        transform: what the rows have been through.
        post_processing: its kind.
    """
    description = corpus.path / "vectors" / f"{name}.json"
    rows_file = description.with_suffix(".npy")
    transform_file = description.with_suffix(".post.npz")
    with locked(description):
        # Files get their names where the block ends, all of them after the last byte.
        with atomic_path(rows_file) as own, atomic_path(transform_file) as other:
            with open(own, "wb") as file:
                np.save(file, rows)
            with open(other, "wb") as file:
                np.savez(file, **transform.arrays)  # type: ignore[arg-type]
            checksums = {
                rows_file.name: FileChecksum.of(own),
                transform_file.name: FileChecksum.of(other),
            }
            remove(description)
        write_record(
            description,
            TableRecord(
                dtype="float16" if rows.dtype == np.float16 else "float32",
                zero_rows=int((~rows.any(axis=1)).sum()),
                vectors=VectorSource.of(vectors, post_processing),
                lexicon_fingerprint=corpus.record.lexicon_fingerprint,
                checksums=checksums,
            ),
            format=FORMAT,
            version=VERSION,
        )
