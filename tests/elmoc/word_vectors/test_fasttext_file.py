"""FastText files: sizes that cannot be true are refused, and no file crashes a look-up."""

import struct
from itertools import product
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.kernels.loading import NoKernelsError
from elmoc.word_vectors.fasttext import FastTextVectors
from tests.elmoc.word_vectors.fasttext_files import DIM, FIELDS, KINDS, WORDS
from tests.fuzz.damage import bounded


def changed(content: bytes, offset: int, form: str, value: float) -> bytes:
    damaged = bytearray(content)
    struct.pack_into(form, damaged, offset, value)
    return bytes(damaged)


def refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match=path.name):
        FastTextVectors(path)


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_every_kind_that_end_anywhere(tmp_path: Path, kind: str) -> None:
    content, path = KINDS[kind], tmp_path / "v.bin"
    for kept in [*range(0, len(content), 1 + len(content) // 300), len(content) - 1]:
        refused(path, content[:kept])
    refused(path, content + b"\0")


def test_other_versions_foreign_and_missing_files(tmp_path: Path) -> None:
    data, path = KINDS["skip-gram"], tmp_path / "v.bin"
    for head in (struct.pack("<2i", 793712314, 13), struct.pack("<2i", 793712314, 10), b"PK\3\4____"):
        refused(path, head + data[8:])
    with pytest.raises(FileNotFoundError):
        FastTextVectors(tmp_path / "none.bin")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dim", 4),
        ("dim", 2**31 - 1),
        ("bucket", 0),
        ("bucket", 2**31 - 1),
        ("maxn", 2**31 - 1),
        ("entries", 1),
        ("pruned", 0),
    ],
)
def test_numbers_of_the_header_that_cannot_be(tmp_path: Path, field: str, value: float) -> None:
    refused(tmp_path / "v.bin", changed(KINDS["skip-gram"], *FIELDS[field], value))


def test_entries_of_the_dictionary_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "v.bin"
    kind = KINDS["labels"].index(b"cat\0") + 12  # the type of a word is 0, and of a label 1
    refused(path, changed(KINDS["labels"], kind, "<b", 1))
    matrix = KINDS["skip-gram"].index(struct.pack("<B2q", 0, 24, DIM))
    refused(path, changed(KINDS["skip-gram"], matrix, "<B", 1))  # it is quantised


def test_vectors_that_are_not_finite(tmp_path: Path) -> None:
    content = KINDS["words alone"]
    start = len(content) - (4 * DIM * 4 + 17) - 4 * DIM * 4  # of the four rows of the first matrix
    (tmp_path / "v.bin").write_bytes(changed(content, start + 4 * DIM * 2, "<f", float("inf")))
    vectors = FastTextVectors(tmp_path / "v.bin")
    expected = np.frombuffer(content[start:][: 4 * DIM * 4], np.float32).reshape(4, DIM)
    assert np.array_equal(vectors.lookup(WORDS[:2]), expected[:2])
    with pytest.raises(InputError, match=r"v\.bin: the vector of 'cat'"):
        vectors.lookup(["the", "cat", "cat"])


@pytest.mark.parametrize("compiled", [True, False])
def test_no_number_crashes_a_look_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
    """Boundary values in every field of every kind of file."""
    if not compiled:
        monkeypatch.setattr("elmoc.word_vectors.fasttext._library", Mock(side_effect=NoKernelsError))
    told: list[str] = []
    count, path = 0, tmp_path / "v.bin"
    for content, (offset, form) in product(KINDS.values(), FIELDS.values()):
        large = [2**40, 2**63 - 1] if form == "<q" else []
        for value in (-1, 0, 1, 2, 3, 21, 101, 2**31 - 1, -(2**31), *large):
            path.unlink(missing_ok=True)  # one that is mapped keeps its content
            path.write_bytes(changed(content, offset, form, value))
            count += 1
            try:
                with bounded():
                    FastTextVectors(path).lookup(["the", "theatre", "__label__b", "", "</s>", "x" * 500])
            except InputError as error:
                told.append(str(error))
    assert all(str(path) in each for each in told)
    assert 0.2 * count < len(told) < 0.8 * count
