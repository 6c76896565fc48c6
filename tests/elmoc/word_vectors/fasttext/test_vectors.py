"""FastText vectors from a memory map: bit for bit those of the library, compiled and in NumPy, for any string."""

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from elmoc.errors import InputError
from elmoc.kernels.compiling import KernelBuildError
from elmoc.word_vectors.fasttext import subwords as fasttext_subwords
from elmoc.word_vectors.fasttext.index import open_indexed
from elmoc.word_vectors.fasttext.lookup import CompiledLookup, Lookup, NumpyLookup, _load
from elmoc.word_vectors.fasttext.subwords import hash_strings
from elmoc.word_vectors.fasttext.vectors import FastTextVectors
from tests.elmoc.word_vectors.fasttext.files import DIM, FIELDS, KINDS, LABELS, SUPERVISED, fasttext_bytes

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
    """A file opened by the library and by both look-ups; what `labels` names has no vector here."""

    model: Any
    lookups: tuple[Lookup, ...]
    labels: frozenset[bytes]

    @classmethod
    def of(cls, path: Path, content: bytes, labels: Sequence[str] = ()) -> "Opened":
        path.write_bytes(content)
        model = fasttext.load_model(str(path))
        file, index = open_indexed(path)
        assert index is not None
        lookups = CompiledLookup(file, index), NumpyLookup(file, index)
        return cls(model, lookups, frozenset(label.encode() for label in labels))

    def check(self, words: Sequence[bytes]) -> None:
        """Every bit of every vector has to be the library's."""
        expected = np.zeros((len(words), self.model.get_dimension()), np.float32)
        for row, word in enumerate(words):
            if word not in self.labels:
                expected[row] = self.model.get_word_vector(word)
        for lookup in self.lookups:
            vectors = np.zeros_like(expected)
            lookup.fill(words, vectors)
            np.testing.assert_array_equal(vectors.view(np.uint32), expected.view(np.uint32), lookup.description)


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
@example(words=[*WORDS, *LABELS])
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
        opened[name].check(words or [b""])


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
    each.check([*entries, *(word + b"a" for word in entries), *(word[:-1] for word in entries)])


def test_words_with_one_hash_are_told_apart(tmp_path: Path) -> None:
    same = [b"costarring", b"liquid", b"declinate", b"macallums", b"altarage", b"zinke"]  # pairs of FNV-1a's collisions
    data = np.frombuffer(b"".join(same), np.uint8)
    lengths = np.array([len(word) for word in same])
    hashes = hash_strings(data, np.cumsum(lengths) - lengths, lengths)
    assert len(set(hashes.tolist())) == 3
    each = Opened.of(tmp_path / "v.bin", fasttext_bytes(words=[*same[::2], *same[1:2]]))
    each.check(same)


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_many_words_and_long_ones(opened: dict[str, Opened], monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(fasttext_subwords, "_BLOCK_NUMBERS", block)
    generator = np.random.default_rng(0)
    words = ["".join(generator.choice(list("abé日<"), size=length)) for length in generator.integers(0, 20, 200)]
    words[7] = "é日x" * 1000
    words[-1] = "long" * 1000
    for name in ("published", "single", "wide", "supervised"):
        opened[name].check([word.encode() for word in words])


def test_hashes_of_many_strings_are_those_of_one_byte_after_another() -> None:
    def plain(word: bytes) -> int:
        value = 2166136261
        for byte in word:
            value = ((value ^ int(np.int8(byte - 256 if byte > 127 else byte))) * 16777619) % (1 << 32)
        return value

    generator = np.random.default_rng(1)
    words = [generator.bytes(int(length)) for length in generator.integers(0, 30, 300)] + [generator.bytes(5000)]
    lengths = np.array([len(word) for word in words])
    starts = np.cumsum(lengths) - lengths
    hashes = hash_strings(np.frombuffer(b"".join(words), np.uint8), starts, lengths)
    assert hashes.tolist() == [plain(word) for word in words]


def test_strings_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    (tmp_path / "v.bin").write_bytes(KINDS["skip-gram"])
    with pytest.raises(InputError, match=r"'a\\ud800' has no word vector, since it cannot be written as UTF-8 \(near"):
        FastTextVectors(tmp_path / "v.bin").lookup(["the", "a\ud800"])


def test_no_words_have_no_vectors(tmp_path: Path) -> None:
    (tmp_path / "v.bin").write_bytes(KINDS["skip-gram"])
    assert FastTextVectors(tmp_path / "v.bin").lookup([]).shape == (0, DIM)


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


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    _load.cache_clear()
    monkeypatch.setenv("CXX", "no-such-compiler")
    yield
    _load.cache_clear()


def test_without_a_compiler_numpy_looks_words_up(tmp_path: Path, no_compiler: None) -> None:
    path = tmp_path / "v.bin"
    path.write_bytes(KINDS["skip-gram"])
    vectors = FastTextVectors(path)
    assert vectors.description == "NumPy: there is no C++ compiler (no-such-compiler)"
    expected = fasttext.load_model(str(path)).get_word_vector("unseen")
    assert np.array_equal(vectors.lookup(["unseen"]), [expected])
    file, index = open_indexed(path)
    assert index is not None
    with pytest.raises(KernelBuildError):
        CompiledLookup(file, index)


@pytest.mark.parametrize("kind", ["labels", "quantised"])
def test_vectors_are_opened_again_in_other_processes(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "v.bin"
    path.write_bytes(KINDS[kind])
    vectors = FastTextVectors(path)
    other = pickle.loads(pickle.dumps(vectors))
    words = ["the", "unseen", LABELS[0]]
    assert np.array_equal(other.lookup(words), vectors.lookup(words))
    assert not vectors.lookup(LABELS).any()
    assert other.fingerprint == vectors.fingerprint
    assert vectors.description.startswith("the fastText library" if kind == "quantised" else "C++ compiled by")
