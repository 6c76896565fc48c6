"""FastText vectors from a memory map: bit for bit those of the library, compiled or in Python, for any string."""

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import fasttext
import numpy as np
import pytest
from elmoc.kernels.loading import NoKernelsError
from elmoc.word_vectors.fasttext import FastTextVectors
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.elmoc.word_vectors.fasttext_files import FIELDS, KINDS, LABELS, SUPERVISED, fasttext_bytes

WORDS = ("the", "</s>", "théâtre", "日本語", "😀", "a", "<", ">", "the", "x y", "\x01", "ß" * 40, "")
"""Of the dictionaries here; one is there twice."""
FILES = {
    "published": fasttext_bytes(words=WORDS),
    "five": fasttext_bytes(words=WORDS, subwords=(5, 5), bucket=2_000_003),
    "single": fasttext_bytes(words=WORDS, subwords=(1, 2), bucket=7),
    "none shorter": fasttext_bytes(words=WORDS, subwords=(0, 100), bucket=11),
    "no n-grams": fasttext_bytes(words=WORDS, subwords=(3, 0), bucket=13),
    "crossed": fasttext_bytes(words=WORDS, subwords=(4, 2), bucket=13),
    "words alone": fasttext_bytes(words=WORDS, subwords=(0, 0), bucket=0),
    "without </s>": fasttext_bytes(words=["the", "cat"], subwords=(1, 6)),
    "one number": fasttext_bytes(words=WORDS, dim=1),
    "wide": fasttext_bytes(words=WORDS, dim=300),
    "supervised": fasttext_bytes(words=WORDS, model=SUPERVISED, labels=LABELS),
    "supervised before n-grams": fasttext_bytes(words=WORDS, model=SUPERVISED, labels=LABELS, version=11),
    "label and word": fasttext_bytes(words=WORDS, model=SUPERVISED, labels=("the", "__label__b")),
}
STRINGS = (
    st.text()
    | st.sampled_from([*WORDS, *LABELS, "them", "unseen", "</s", "a\0b"])
    | st.text("<>/s日é😀\0 \n", max_size=9)
)


@dataclass(frozen=True)
class Opened:
    """A file opened by the library and by us, compiled and in Python; what `labels` names has no vector here."""

    model: Any
    compiled: FastTextVectors
    slow: FastTextVectors
    labels: frozenset[bytes]

    @classmethod
    def of(cls, path: Path, content: bytes, labels: Sequence[str] = ()) -> "Opened":
        path.write_bytes(content)
        labels_of_file = frozenset(label.encode() for label in labels)
        compiled = FastTextVectors(path)
        with patch("elmoc.word_vectors.fasttext._library", side_effect=NoKernelsError):
            slow = FastTextVectors(path)
        assert "_python" in slow._fill.__qualname__
        assert "_compiled" in compiled._fill.__qualname__
        return cls(fasttext.load_model(str(path)), compiled, slow, labels_of_file)

    def check(self, words: Sequence[bytes], *, in_python: bool = True) -> None:
        """Every bit of every vector has to be the library's."""
        expected = np.zeros((len(words), self.model.get_dimension()), np.float32)
        for row, word in enumerate(words):
            if word not in self.labels:
                expected[row] = self.model.get_word_vector(word)
        for each in (self.compiled, self.slow) if in_python else (self.compiled,):
            vectors = np.zeros_like(expected)
            each._fill(words, vectors)
            np.testing.assert_array_equal(vectors.view(np.uint32), expected.view(np.uint32))


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Opened]:
    folder = tmp_path_factory.mktemp("opened")
    labels = {"supervised": LABELS, "supervised before n-grams": LABELS, "label and word": ("the", "__label__b")}
    return {
        name: Opened.of(folder / f"{number}.bin", content, labels.get(name, ()))
        for number, (name, content) in enumerate(FILES.items())
    }


@settings(deadline=None, max_examples=30)
@given(words=st.lists(STRINGS, min_size=1, max_size=8))
@example(words=[*WORDS, *LABELS, "é日x" * 1000])
@example(
    words=["", "<", ">", "<>", "</s>", "</s", "/s>", "a", "é", "日", "\0", "the\0", "\n", " ", "\ufeff", "\U0010ffff"]
)
def test_vectors_of_any_text_are_the_library_s(opened: dict[str, Opened], words: list[str]) -> None:
    for each in opened.values():
        each.check([word.encode() for word in words])


@settings(deadline=None, max_examples=60)
@given(words=st.lists(st.binary(max_size=12) | st.text("\x80\xbf\xc3<a").map(lambda text: text.encode("latin-1"))))
@example(words=[b"\x80", b"\xbf\xbfa", b"\xff", b"the\0\x64\0"])
def test_vectors_of_what_is_not_utf_8_are_the_library_s(opened: dict[str, Opened], words: list[bytes]) -> None:
    for name in ("published", "single", "none shorter"):
        opened[name].check(words or [b""], in_python=False)


@settings(deadline=None, max_examples=40)
@given(
    entries=st.lists(st.binary(max_size=4).filter(lambda word: b"\0" not in word), min_size=1, max_size=50),
    bounds=st.tuples(st.integers(0, 4), st.integers(0, 5)),
    bucket=st.integers(1, 50),
    dim=st.integers(1, 20),
)
def test_dictionaries_of_any_bytes(
    tmp_path_factory: pytest.TempPathFactory, entries: list[bytes], bounds: tuple[int, int], bucket: int, dim: int
) -> None:
    content = fasttext_bytes(words=entries, subwords=bounds, bucket=bucket, dim=dim)
    each = Opened.of(tmp_path_factory.getbasetemp() / "any.bin", content)
    each.check([*entries, *(word + b"a" for word in entries), *(word[:-1] for word in entries)], in_python=False)


def test_words_with_one_hash_are_told_apart(tmp_path: Path) -> None:
    same = [b"costarring", b"liquid", b"declinate", b"macallums", b"altarage", b"zinke"]  # pairs of FNV-1a's collisions
    each = Opened.of(tmp_path / "v.bin", fasttext_bytes(words=[*same[::2], *same[1:2]]))
    each.check(same)


def test_a_dense_file_is_neither_read_whole_nor_by_the_library(tmp_path: Path) -> None:
    words, buckets, dim = 1000, 2_000_000, 300  # 2.4 GB of zeros, which take no room on the disk
    small = fasttext_bytes(words=[f"w{number}" for number in range(words)], dim=dim, bucket=20)
    begins = small.index(struct.pack("<B2q", 0, words + 20, dim))
    path = tmp_path / "v.bin"
    with open(path, "wb") as file:
        file.write(small[:begins] + struct.pack("<B2q", 0, words + buckets, dim))
        file.seek(4 * dim * (words + buckets), os.SEEK_CUR)
        file.write(struct.pack("<B2q", 0, words, dim))
        file.truncate(file.tell() + 4 * dim * words)
        file.seek(FIELDS["bucket"][0])
        file.write(struct.pack("<i", buckets))
    code = """
import sys
from elmoc.word_vectors.opening import open_word_vectors
assert open_word_vectors(sys.argv[1]).lookup(["the", "w5", "unseen"]).shape == (3, 300)
print(sorted({"fasttext", "fasttext_pybind", "torch"} & set(sys.modules)))
print(*[line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")])
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    loaded, kilobytes = done.stdout.splitlines()
    assert loaded == "[]"
    assert int(kilobytes) < 150_000


def test_a_dictionary_of_one_word_takes_no_time(tmp_path: Path) -> None:
    (tmp_path / "v.bin").write_bytes(fasttext_bytes(words=[b""] * 200_000, dim=1))
    assert FastTextVectors(tmp_path / "v.bin").lookup([""]).any()


def test_other_processes_open_the_same_file(tmp_path: Path) -> None:
    path, words = tmp_path / "v.bin", ["the", "unseen", "", *LABELS]
    path.write_bytes(KINDS["labels"])
    vectors = FastTextVectors(path)
    assert np.array_equal(vectors.lookup(words), pickle.loads(pickle.dumps(vectors)).lookup(words))
    assert not vectors.lookup(LABELS).any()
