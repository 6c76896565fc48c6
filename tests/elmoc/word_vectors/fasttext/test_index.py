"""Index of a fastText dictionary: kept in the cache, and never trusted when it may be wrong."""

import json
from pathlib import Path

import fasttext
import numpy as np
import pytest
import xxhash

from elmoc.errors import InputError
from elmoc.word_vectors.fasttext import file as fasttext_file
from elmoc.word_vectors.fasttext import index as fasttext_index
from elmoc.word_vectors.fasttext.vectors import FastTextVectors
from tests.elmoc.word_vectors.fasttext.files import KINDS, fasttext_bytes

WORDS = ("the", "theatre", "cat", "unseen", "</s>", "")


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file; indexes of dictionaries of any size are kept."""
    monkeypatch.setattr(fasttext_index, "KEPT_BYTES", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "v.bin").write_bytes(KINDS["skip-gram"])
    return tmp_path / "v.bin"


def check(path: Path) -> None:
    """The vectors of a file are the library's."""
    model = fasttext.load_model(str(path))
    expected = np.array([model.get_word_vector(word) for word in WORDS])
    assert np.array_equal(FastTextVectors(path).lookup(WORDS), expected)


def index_of(path: Path) -> Path:
    """Its index."""
    [index] = (path.parent / "elmoc/indexes").iterdir()
    return index


def test_the_index_is_kept_and_read_instead_of_the_dictionary(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(path)
    monkeypatch.setattr(fasttext_file, "_check_dictionary", None)
    check(path)
    index_of(path).write_bytes(b"")
    with pytest.raises(InputError):
        FastTextVectors(path)


def test_where_no_index_can_be_kept_it_is_made_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(path))  # no folder
    check(path)
    check(path)


def test_an_index_of_another_state_of_the_file_is_made_again(path: Path) -> None:
    check(path)
    old = index_of(path).read_bytes()
    path.write_bytes(fasttext_bytes(words=["</s>", "cat", "the", "theatre"]))
    check(path)
    assert index_of(path).read_bytes() != old


def test_a_damaged_index_is_made_again(path: Path) -> None:
    check(path)
    whole = index_of(path).read_bytes()
    for place in (*range(0, 200, 7), *range(4096, len(whole))):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        index_of(path).write_bytes(damaged)
        check(path)
        assert index_of(path).read_bytes() == whole
    for kept in (0, 100, 4096, len(whole) - 1):
        index_of(path).write_bytes(whole[:kept])
        check(path)
        assert index_of(path).read_bytes() == whole
    head, index = json.loads(whole[:4096]), np.frombuffer(whole[4096:], fasttext_index.ENTRY).copy()
    for far in (-1, head["dictionary_end"], 1 << 40):  # somebody has made it: its checksum fits
        index["offset"][1] = far
        head["checksum"] = xxhash.xxh3_64_hexdigest(index.data)
        index_of(path).write_bytes(json.dumps(head).encode().ljust(4096) + index.tobytes())
        check(path)
        assert index_of(path).read_bytes() == whole
