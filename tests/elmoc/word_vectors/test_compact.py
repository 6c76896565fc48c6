"""Compact word vectors: rows and look-ups equal slow twins; files come back, and damaged ones are refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.word_vectors.coded_rows import CodedRows, pack_codes, unpack_codes
from elmoc.word_vectors.compact import CompactVectors, NgramKind, Ngrams
from elmoc.word_vectors.opening import open_word_vectors
from safetensors.numpy import load_file, save_file
from tests.elmoc.word_vectors.fasttext_files import fasttext_bytes

WORDS = [f"word{number}" for number in range(90)]
UNSEEN = ["unheard-of", "naïveté", "日本語", "x", "<s>", "\ud800", ""]
KIND = NgramKind(buckets=50, shortest=3, longest=5)


def coded(kind: str, count: int, *, entries: int = 10, seed: int = 0, size: int = 12) -> CodedRows:
    """Random rows of three codebooks, with all that rows can have."""
    generator = np.random.default_rng(seed)
    width = 4 if kind == "concatenated" else 12
    return CodedRows(
        kind,
        codes=pack_codes(generator.integers(entries, size=(count, 3)), entries),
        codebooks=generator.standard_normal((3, entries, width)).astype(np.float16),
        norms=generator.random(count).astype(np.float16),
        matrix=generator.standard_normal((12, size)).astype(np.float16),
        mean=generator.standard_normal(size, dtype=np.float32),
    )


def compact(ngrams: bool = True) -> CompactVectors:
    """Rows for all of `WORDS`, and for three in five n-grams."""
    buckets = np.flatnonzero(np.arange(KIND.buckets) % 5 < 3).astype(np.int32)
    rows = coded("concatenated", len(buckets), seed=1)
    kept = Ngrams(KIND, buckets, rows, np.arange(12, dtype=np.float32)) if ngrams else None
    return CompactVectors.of_words(WORDS, coded("concatenated", len(WORDS)), kept)


@pytest.mark.parametrize("entries", [2, 3, 4, 7, 8, 16, 32, 64, 200, 256, 257, 1000, 65536])
def test_codes_come_back_and_take_the_bits_they_need(entries: int) -> None:
    codes = np.random.default_rng(0).integers(entries, size=(40, 13))
    codes[0], codes[1] = 0, entries - 1
    packed = pack_codes(codes, entries)
    bits = (entries - 1).bit_length()
    assert packed.shape == (40, (13 * bits + 7) // 8)
    assert (unpack_codes(packed, 13, entries) == codes).all()
    for row, numbers in zip(packed, codes.tolist(), strict=True):
        plain = sum(number << (place * bits) for place, number in enumerate(numbers))
        assert row.tobytes() == plain.to_bytes(packed.shape[1], "little")


@pytest.mark.parametrize("kind", ["concatenated", "summed"])
def test_rows_are_those_of_a_plain_program(kind: str) -> None:
    rows = coded(kind, 90, size=9)
    assert rows.norms is not None
    assert rows.matrix is not None
    assert rows.mean is not None
    for row, vector in enumerate(rows.vectors(np.arange(90))):
        chosen = [
            book[code] for book, code in zip(rows.codebooks, unpack_codes(rows.codes[[row]], 3, 10)[0], strict=True)
        ]
        parts = np.array(chosen, dtype=np.float64)
        made = parts.reshape(-1) if kind == "concatenated" else parts.sum(axis=0)
        expected = float(rows.norms[row]) * made @ rows.matrix.astype(np.float64) + rows.mean
        np.testing.assert_allclose(vector, expected, rtol=1e-5, atol=1e-5)
    bare = CodedRows(kind, codes=rows.codes, codebooks=rows.codebooks)
    np.testing.assert_allclose(
        bare.vectors(np.array([89]))[0] * float(rows.norms[89]) @ rows.matrix + rows.mean, vector, rtol=1e-4, atol=1e-4
    )


def test_rows_are_the_same_whatever_stands_beside_them() -> None:
    """Of the size of real ones: BLAS adds up the products of small matrices in one order."""
    generator = np.random.default_rng(5)
    codes = generator.integers(256, size=(700, 30))
    rows = CodedRows(
        "concatenated",
        codes=pack_codes(codes, 256),
        codebooks=generator.standard_normal((30, 256, 10)).astype(np.float16),
        matrix=generator.standard_normal((300, 300)).astype(np.float16),
    )
    order = np.arange(700)
    whole = rows.vectors(order)
    for size in (1, 8, 63, 64, 65, 100, 256):
        parts = [rows.vectors(order[start : start + size]) for start in range(0, 700, size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_ngrams_are_those_of_the_library(tmp_path: Path) -> None:
    (tmp_path / "v.bin").write_bytes(fasttext_bytes())
    model: Any = fasttext.load_model(str(tmp_path / "v.bin"))
    arguments = model.f.getArgs()
    kind = NgramKind(buckets=arguments.bucket, shortest=arguments.minn, longest=arguments.maxn)
    words = [word for word in (*UNSEEN, "ends-in-é", "a b", "w1") if word != "\ud800"]
    owners, buckets = kind.of_words(words)
    assert (np.diff(owners) >= 0).all()
    for place, word in enumerate(words):
        known, number = set(model.words), len(model.words)
        ids = [row - number for row in model.get_subwords(word)[1]][int(word in known) :]
        assert sorted(buckets[owners == place]) == sorted(ids), word
    one, _ = NgramKind(buckets=7, shortest=1, longest=1).of_words(["ab", ""])
    assert one.tolist() == [0, 0], "the marks of the boundary are no n-grams of one character"


def test_a_look_up_is_that_of_a_plain_program() -> None:
    vectors = compact()
    rows, ngrams = coded("concatenated", len(WORDS)).vectors(np.arange(len(WORDS))), vectors.parts
    assert isinstance(ngrams, Ngrams)
    of_ngrams = dict(zip(ngrams.buckets.tolist(), ngrams.rows.vectors(np.arange(len(ngrams.buckets))), strict=True))
    words = [WORDS[7], *UNSEEN, WORDS[3], "word90"]
    found = vectors.lookup(words)
    for word, vector in zip(words, found, strict=True):
        _, buckets = KIND.of_words([word])
        parts = [of_ngrams.get(bucket, ngrams.rest) for bucket in buckets.tolist()]
        own = WORDS.index(word) if word in WORDS else None
        expected = rows[own] if own is not None else np.mean(parts, axis=0) if parts else np.zeros(12)
        np.testing.assert_allclose(vector, expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(vectors.lookup([word])[0], vector, err_msg="it depends on others")
    assert compact(ngrams=False).fingerprint != vectors.fingerprint


def test_of_words_with_the_same_hash_the_first_has_the_row() -> None:
    rows = coded("summed", 4)
    vectors = CompactVectors.of_words(["a", "b", "a", "c"], rows)
    assert len(vectors.hashes) == 3
    np.testing.assert_array_equal(vectors.lookup(["a", "b", "c"]), rows.vectors(np.array([0, 1, 3])))


def changed(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[dict[str, np.ndarray]], object]:
    return lambda tensors: tensors.update({name: change(tensors[name])})


@pytest.mark.parametrize(
    "damage",
    [
        changed("words.codes", lambda codes: codes | 0xFF),  # codes ≥ K
        changed("words.codes", lambda codes: codes[:-1]),
        changed("words.codes", lambda codes: codes[:, :-1]),
        changed("words.hashes", lambda hashes: hashes[::-1].copy()),
        changed("words.hashes", lambda hashes: hashes * 0),
        changed("words.hashes", lambda hashes: hashes.astype(np.int32)),
        changed("words.codebooks", lambda books: books[:, :, :-1].copy()),  # M·d ≠ E
        changed("words.codebooks", lambda books: books[:, :1].copy()),
        changed("words.codebooks", lambda books: books * np.float16("inf")),
        changed("words.norms", lambda norms: norms[1:]),
        changed("words.mean", lambda mean: mean[1:]),
        changed("words.matrix", lambda matrix: matrix[:, 1:].copy()),
        changed("ngrams.buckets", lambda buckets: buckets[::-1].copy()),
        changed("ngrams.rest", lambda rest: rest[1:]),
        lambda tensors: tensors.pop("words.codes"),
        lambda tensors: tensors.pop("ngrams.rest"),
        lambda tensors: tensors.update({"words.other": np.zeros(3)}),
    ],
)
def test_files_that_cannot_be_are_refused(damage: Callable[[dict[str, np.ndarray]], object], tmp_path: Path) -> None:
    vectors = compact()
    vectors.write(tmp_path / CompactVectors.file_name)
    tensors = load_file(tmp_path / CompactVectors.file_name)
    damage(tensors)
    save_file(tensors, tmp_path / CompactVectors.file_name, metadata={"elmoc": json.dumps(vectors.description())})
    with pytest.raises(InputError, match=CompactVectors.file_name):
        open_word_vectors(tmp_path)


@pytest.mark.parametrize(
    "info",
    [
        *({"kind": "other"}, {"kind": "summed"}, {"version": 9}, {"format": "other"}),
        *({"ngrams": {"buckets": 0}}, {"ngrams": None}, {"filters": 3}),
    ],
)
def test_other_descriptions_are_refused(info: dict[str, Any], tmp_path: Path) -> None:
    compact().write(tmp_path / CompactVectors.file_name)
    about = {"elmoc": json.dumps(compact().description() | info)}
    save_file(load_file(tmp_path / CompactVectors.file_name), tmp_path / CompactVectors.file_name, metadata=about)
    with pytest.raises(InputError, match=CompactVectors.file_name):
        open_word_vectors(tmp_path)
