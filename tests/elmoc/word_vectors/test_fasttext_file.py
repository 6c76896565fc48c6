"""FastText files: their width is read, and truncated, foreign and newer ones are refused in words."""

import struct
from pathlib import Path

import pytest

from elmoc.errors import InputError
from elmoc.word_vectors.fasttext_file import vector_width
from elmoc.word_vectors.sources import FastTextVectors


def test_width_of_a_fasttext_file(fasttext_file: Path) -> None:
    assert vector_width(fasttext_file) == 4


@pytest.mark.parametrize("kept", [0, 6, 40, 90, 0.5, 0.999])
def test_truncated_fasttext_files(fasttext_file: Path, tmp_path: Path, kept: float) -> None:
    data = fasttext_file.read_bytes()
    (tmp_path / "v.bin").write_bytes(data[: int(kept * len(data)) if kept < 1 else int(kept)])
    with pytest.raises(InputError, match="truncated"):
        FastTextVectors(tmp_path / "v.bin")


def test_foreign_and_other_versions_of_fasttext_files(fasttext_file: Path, tmp_path: Path) -> None:
    data = fasttext_file.read_bytes()
    for head in (struct.pack("<2i", 793712314, 13), b"PK\3\4____"):
        (tmp_path / "v.bin").write_bytes(head + data[8:])
        with pytest.raises(InputError, match="is not a fastText"):
            FastTextVectors(tmp_path / "v.bin")
