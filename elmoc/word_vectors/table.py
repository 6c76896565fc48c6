"""Vector tables: the transformed word vectors of a lexicon on disk, how they are written and opened.

vectors/NAME.npy     [V, E] float16 or float32, rows in the order of the lexicon, transformed
vectors/NAME.json    version, word vectors (origin, fingerprint), lexicon fingerprint, dtype, zero rows, the kind of the
                     transform (`post_processing`) and its raw boundary vectors; written last
vectors/NAME.post.npz   mean and matrix of the transform, where it has any
"""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.files.arrays import load_array, save_array
from elmoc.files.records import read_versioned, write_json
from elmoc.files.writing import atomic_path
from elmoc.word_vectors.sources import VectorSource, WordVectors
from elmoc.word_vectors.transform import VectorTransform

FORMAT = "elmoc-vectors"
VERSION = 1
DTYPES = ("float16", "float32")


class VectorTable:
    """A vector table opened for reading; `rows` is memory-mapped.

    Raises `InputError` when it is missing, truncated, of another version, or made for another lexicon.
    """

    def __init__(self, corpus: Corpus, name: str) -> None:
        self.path = corpus.path / "vectors" / f"{name}.npy"
        description = self.path.with_suffix(".json")
        if not description.exists():
            raise InputError(
                f"{description} does not exist: build the table with `python -m data_scripts.build_vectors "
                f"{corpus.path} VECTORS --name {name}`"
            )
        info = read_versioned(description, format=FORMAT, version=VERSION, advice="build the table again")
        self.info: dict[str, Any] = info
        if info["lexicon_fingerprint"] != corpus.lexicon_fingerprint:
            raise InputError(f"{self.path} was built for another lexicon than that of {corpus.path}: build it again")
        shape = (corpus.types, info["size"])
        self.rows = load_array(self.path, shape=shape, dtype=info["dtype"], mmap=True, advice="build the table again")
        self.name = name
        self.size: int = info["size"]
        self.zero_rows: int = info["zero_rows"]
        self.source = VectorSource(info["origin"], info["vectors_fingerprint"], self.size, info["post_processing"])

    @property
    def transform(self) -> VectorTransform:
        """What the table's vectors have been through, for words outside the table."""
        boundary = np.array(self.info["boundary_vectors"], dtype=np.float32)
        if self.source.post_processing == "none":
            return VectorTransform(boundary=boundary)
        path = transform_path(self.path)
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return VectorTransform(boundary=boundary, mean=arrays["mean"], matrix=arrays.get("matrix"))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise InputError(f"{path} is missing or damaged ({error}): build the table again") from None


def write_vector_table(
    corpus: Corpus,
    name: str,
    *,
    rows: np.ndarray,
    vectors: WordVectors,
    transform: VectorTransform,
    post_processing: str,
) -> dict[str, Any]:
    """Write `rows` [V, E] (transformed, float16 or float32) and their description; returns the description.

    `post_processing` is the name of the transform's kind.
    """
    path = corpus.path / "vectors" / f"{name}.npy"
    info = {
        "format": FORMAT,
        "version": VERSION,
        "size": rows.shape[1],
        "dtype": str(rows.dtype),
        "zero_rows": int((~rows.any(axis=1)).sum()),
        "origin": vectors.origin,
        "vectors_fingerprint": vectors.fingerprint,
        "lexicon_fingerprint": corpus.lexicon_fingerprint,
        "post_processing": post_processing,
        "boundary_vectors": [[float(number) for number in row] for row in transform.boundary],
    }
    path.with_suffix(".json").unlink(missing_ok=True)  # no description, no table: never a new one with old rows
    if transform.mean is not None:
        arrays = {"mean": transform.mean} | ({} if transform.matrix is None else {"matrix": transform.matrix})
        with atomic_path(transform_path(path)) as partial, open(partial, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
    save_array(path, rows)
    write_json(path.with_suffix(".json"), info)
    return info


def transform_path(path: Path) -> Path:
    """Where the mean and matrix of the table at `path` are kept."""
    return path.with_suffix(".post.npz")
