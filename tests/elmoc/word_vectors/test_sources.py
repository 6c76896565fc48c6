"""Sources of word vectors: each gives the vectors of its file or seed, and damaged files are refused in words."""

import gzip
import tracemalloc
from pathlib import Path

import fasttext
import numpy as np
import pytest

from elmoc.errors import InputError
from elmoc.word_vectors import sources
from elmoc.word_vectors.fasttext.vectors import FastTextVectors
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.sources import RandomVectors, TextVectors


def test_fasttext_vectors(fasttext_file: Path) -> None:
    vectors = FastTextVectors(fasttext_file)
    rows = vectors.lookup(["the", "theatre", "the"])
    assert rows.shape == (3, 4)
    assert rows.dtype == np.float32
    model = fasttext.load_model(str(fasttext_file))
    assert np.array_equal(rows, [model.get_word_vector(word) for word in ("the", "theatre", "the")])
    assert rows[0].any()
    assert vectors.fingerprint == FastTextVectors(fasttext_file).fingerprint


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 1 2\ncat 1\n", "line 2: 1 numbers where 2"),
        ("the 1 2\ncat 1 x\n", "line 2: could not convert"),
        ("the 1 2\ncat 1 nan\n", "line 2 has numbers that are not finite"),
        ("the 1 2\ncat 1 -inf\n", "line 2 has numbers that are not finite"),
        ("the 1 2\ncat 1 1e39\n", "line 2 has numbers that are not finite"),
        ("the 1 2\ncat 1 2 3\n", "line 2: 3 numbers where 2 are expected"),
        ("the 1 2\n1 2 3 4 5\n", "line 2: 4 numbers where 2 are expected"),
        ("the 1 2\ncat\n", "line 2: 0 numbers where 2 are expected"),
        ("the 1 2\n\nsat 1 2\n", "line 2: 0 numbers where 2 are expected"),
        ("\nthe 1 2\n", "line 1: vectors of 0 numbers, where 2 to 65,536 are expected: give a file with a word"),
        ("the\n", "line 1: vectors of 0 numbers"),
        ("the 1\n", "line 1: vectors of 1 numbers"),
        ("3 0\nthe 1 2\n", "line 1: vectors of 0 numbers"),
        ("3 1\nthe 1\n", "line 1: vectors of 1 numbers"),
        ("3 999999999\nthe 1 2\n", "line 1: vectors of 999,999,999 numbers"),
        (f"{'9' * 5000} 2\nthe 1 2\n", "line 1: vectors of 1 numbers"),
        ("\u00b2 2\nthe 1 2\n", "line 1: vectors of 1 numbers"),
        (f"the{' 1' * 70_000}\n", "line 1: vectors of 70,000 numbers"),
        (f"the 1 2\ncat 1 {'x' * 5000}\n", r"line 2: could not convert string to float: 'xxxx[^:]{,80}…: download it"),
        ("", "holds no vectors"),
        ("2 2\n", "has 0 vectors where its first line says 2"),
        ("3 2\nthe 1 2\ncat 1 2\n", "has 2 vectors where its first line says 3"),
        (f"{'9' * 18} 65536\nthe{' 1' * 65536}\n", "has 1 vectors where its first line says 999,999,999,999,999,999"),
        ("2 3\nthe\t1 2 3\nfoo 1 2 3\n", "line 2 has words and numbers that are not separated by single spaces: put"),
        ("the 1 2\ncat 1\t2\n", "line 2 has words and numbers that are not separated by single spaces"),
    ],
)
def test_bad_text_vectors(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "v.vec").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        TextVectors(tmp_path / "v.vec")
    assert str(caught.value).startswith(str(tmp_path / "v.vec"))
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("header", ["", "400 500\n"])
def test_text_vectors_are_in_memory_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str) -> None:
    monkeypatch.setattr(sources, "_ROWS", 25)
    numbers = " ".join(map(str, range(499)))
    (tmp_path / "v.vec").write_text(header + "".join(f"w{row} {row} {numbers}\n" for row in range(400)))
    tracemalloc.start()
    vectors = TextVectors(tmp_path / "v.vec")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    rows = vectors.lookup([f"w{row}" for row in (399, 0, 25, 400)])
    assert rows[:, :3].tolist() == [[399, 0, 1], [0, 0, 1], [25, 0, 1], [0, 0, 0]]
    assert peak < 400 * 500 * 4 * (1.3 if header else 2)


def test_words_with_spaces_and_words_that_are_there_twice(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text(". . 1 2\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 1: could not convert"):
        TextVectors(tmp_path / "v.txt")
    (tmp_path / "v.txt").write_text("the 1 2\n. . . 3 4\n1 x 5 6\n7 7 8\nthe 9 9\n", encoding="utf-8")
    vectors = TextVectors(tmp_path / "v.txt")
    assert vectors.lookup(["the", ". . .", "1 x", "7"]).tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]


def test_a_link_to_vectors_is_known_by_its_own_name(tmp_path: Path) -> None:
    """As in the cache of a hub, whose links lead to files that are named after their content."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs/0a1b2c").write_text("the 1 2\n")
    (tmp_path / "v.vec").symlink_to("blobs/0a1b2c")
    vectors = open_word_vectors(tmp_path / "v.vec")
    assert vectors.origin == str(tmp_path / "v.vec")
    assert open_word_vectors(vectors.origin).lookup(["the"]).tolist() == [[1, 2]]


def test_links_that_lead_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "v.vec").symlink_to("v.vec")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        TextVectors(tmp_path / "v.vec")


def test_random_vectors() -> None:
    vectors = open_word_vectors("random:5:50")
    rows = vectors.lookup(["a", "b", "a", "\ud800"])
    assert np.array_equal(rows[0], rows[2])
    assert abs(float(rows[0] @ rows[1]) / 50) < 0.6
    assert np.array_equal(rows, RandomVectors(seed=5, size=50).lookup(["a", "b", "a", "\ud800"]))
    assert not np.array_equal(rows, RandomVectors(seed=6, size=50).lookup(["a", "b", "a", "\ud800"]))
    many = RandomVectors(seed=1, size=300).lookup([str(number) for number in range(300)])
    assert abs(many.mean()) < 0.02
    assert abs(many.std() - 1) < 0.02


@pytest.mark.parametrize(
    "origin",
    [
        "random:1",
        "random:a:b",
        "random:-1:5",
        "random:1:0",
        "random:1:65537",
        "random:1:999999999999",
        f"random:{'9' * 21}:5",
        f"random:{'9' * 5000}:5",
        "random:1:1_0",
        "random:\u0661:5",
        "v.pt",
        "v.bin.gz",
        "v",
        "v" * 5000,
    ],
)
def test_unknown_origins(origin: str) -> None:
    with pytest.raises(InputError) as caught:
        open_word_vectors(origin)
    assert len(str(caught.value)) < 300
