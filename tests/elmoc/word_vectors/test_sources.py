"""Sources of word vectors: each gives the vectors of its file or seed, and damaged files are refused in words."""

import gzip
import lzma
import struct
from pathlib import Path

import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.sources import RandomVectors, TextVectors
from tests.elmoc.word_vectors.fasttext_files import DIM, KINDS


@pytest.mark.parametrize("name", ["v.vec", "v.txt", "v.vec.gz", "v.txt.gz"])
@pytest.mark.parametrize("header", ["", "3 2\n"])
def test_text_vectors(tmp_path: Path, name: str, header: str) -> None:
    text = f"{header}the 1 2 \n日本 -0.5 1e-3\na b 3 4\nthe 9 9\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    vectors = open_word_vectors(str(path))
    assert vectors.size == 2
    if header:  # without one, the first line says how many numbers there are: a word with a space has to come later
        assert vectors.lookup(["a b"]).tolist() == [[3, 4]]
    assert np.allclose(vectors.lookup(["日本", "nowhere", "the"]), [[-0.5, 1e-3], [0, 0], [1, 2]])
    assert open_word_vectors(str(path), only={"the"}).lookup(["the", "日本"]).tolist() == [[1, 2], [0, 0]]
    assert open_word_vectors(str(path), only={"The"}).lookup(["The"]).tolist() == [[1, 2]], "the file has no capitals"
    path.write_bytes(gzip.compress(b"the 1 2\nIt 3 4") if name.endswith("gz") else b"the 1 2\nIt 3 4")
    assert open_word_vectors(str(path)).lookup(["The", "it", "It"]).tolist() == [[0, 0], [0, 0], [3, 4]]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("the 1 2\ncat 1\n", 2),
        ("the 1 2\ncat 1 x\n", 2),
        ("the 1 2\ncat 1 nan\n", 2),
        ("the 1 2\ncat 1 1e39\n", 2),
        ("the 1 2\ncat 1 2 3\n", 2),
        ("the 1 2\n1 2 3 4 5\n", 2),
        ("2 2\nthe  1 2\ncat  1 2\n", 2),
        ("\nthe 1 2\n", 1),
        ("3 0\nthe 1 2\n", None),
        ("3 999999999\nthe 1 2\n", 2),
        (f"the{' 1' * 70_000}\n", 1),
        ("the 1 2\ncat 1\t2\n", 2),
        ("", None),
        ("3 2\nthe 1 2\ncat 1 2\n", None),
    ],
)
def test_bad_text_vectors(tmp_path: Path, text: str, line: int | None) -> None:
    (tmp_path / "v.vec").write_text(text)
    with pytest.raises(InputError) as caught:
        TextVectors(tmp_path / "v.vec")
    assert str(caught.value).startswith(f"{tmp_path / 'v.vec'}{f', line {line}' if line else ' '}")


def test_a_shortened_file_is_read_once_its_first_line_is_corrected(tmp_path: Path) -> None:
    path = tmp_path / "v.vec.gz"
    lines = ["1000 2", *(f"w{number} {number} 1" for number in range(1000))]
    path.write_bytes(gzip.compress("\n".join(lines[:6]).encode()))
    with pytest.raises(InputError, match="'5 2'"):
        TextVectors(path)
    path.write_bytes(gzip.compress("\n".join(["5 2", *lines[1:6]]).encode()))
    assert TextVectors(path).lookup(["w4", "w5"]).tolist() == [[4, 1], [0, 0]]


def test_words_with_spaces_and_words_that_are_there_twice(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text(". . 1 2\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 1"):
        TextVectors(tmp_path / "v.txt")
    (tmp_path / "v.txt").write_text("the 1 2\n. . . 3 4\n1 x 5 6\n7 7 8\nthe 9 9\n", encoding="utf-8")
    vectors = TextVectors(tmp_path / "v.txt")
    assert vectors.lookup(["the", ". . .", "1 x", "7"]).tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]


def test_random_vectors() -> None:
    rows = open_word_vectors("random:5:50").lookup(["a", "b", "a", "\ud800"])
    assert abs(float(rows[0] @ rows[1]) / 50) < 0.6
    assert not np.array_equal(rows, RandomVectors(seed=6, size=50).lookup(["a", "b", "a", "\ud800"]))
    many = RandomVectors(seed=1, size=300).lookup([str(number) for number in range(300)])
    assert abs(many.mean()) < 0.02
    assert abs(many.std() - 1) < 0.02


TEXT = "2 3\nthe 1 2 3\ncafé 4 5 6\n".encode()
BINARY = b"2 3\n" + b"".join(word + b" " + np.float32([0.01, 0.2, -1]).tobytes() for word in (b"the", b"\ncat"))
FASTTEXT = KINDS["skip-gram"]
OTHER_FILES = {
    "cc.bin.gz": (gzip.compress(FASTTEXT), r"nor a fastText \.bin file as it is: unpack it"),
    "cc.bin.xz": (lzma.compress(FASTTEXT), r"nor a fastText \.bin file as it is: unpack it"),
    "crawl.vec.zip": (b"PK\3\4" + TEXT, r"compressed by zip.*unpack it"),
    "word2vec.bin": (BINARY, "word2vec.*save_word2vec_format"),
    "news.bin.gz": (gzip.compress(BINARY), "word2vec.*save_word2vec_format"),
    "array.bin": (b"\x93NUMPY\1\0v\0{'descr'", "neither text nor"),
    "pointer.bin": (b"version https://git-lfs\noid 1\n", "line 1: 'version https://git-lfs' stands where"),
    "nothing.bin": (b"", "has no vectors"),
    "cut.bin": (FASTTEXT[:50], "cannot be read"),
    "quantised.vec": (FASTTEXT.replace(struct.pack("<B2q", 0, 24, 5), struct.pack("<B2q", 1, 24, 5)), "print-word-vec"),
    "pruned.ftz": (FASTTEXT[:84] + struct.pack("<q", 3) + FASTTEXT[92:], "quantised.*print-word-vectors"),
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_files_of_other_kinds_are_named_with_what_to_do(tmp_path: Path, name: str) -> None:
    content, error = OTHER_FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"^{tmp_path / name}.*{error}"):
        open_word_vectors(tmp_path / name)


@pytest.mark.parametrize(("name", "content"), [("a.bin", TEXT), ("b.vec", FASTTEXT), ("c", TEXT), ("d.ftz", FASTTEXT)])
def test_a_file_is_known_by_its_content(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert open_word_vectors(tmp_path / name).size == (3 if content == TEXT else DIM)


@pytest.mark.parametrize("origin", ["random:1", "random:-1:5", "random:1:0", "random:1:65537", "v.bin.gz", "v"])
def test_unknown_origins(origin: str) -> None:
    with pytest.raises(InputError):
        open_word_vectors(origin)
