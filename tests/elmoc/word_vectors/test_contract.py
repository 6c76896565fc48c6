"""The contract of word vectors: what holds for every source, and for whatever strings."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from elmoc.corpus import UNKNOWN
from elmoc.interop.many_langs import read_many_langs
from elmoc.interop.original_elmo import read_original_elmo
from elmoc.word_vectors.compact import CompactVectors
from elmoc.word_vectors.fasttext import FastTextVectors
from elmoc.word_vectors.opening import STORED_FILES, open_word_vectors
from elmoc.word_vectors.sources import RandomVectors, TextVectors, WordVectors
from elmoc.word_vectors.stored import LexiconVectors, StoredVectors
from elmoc.word_vectors.subwords import Subwords, SubwordVectors
from tests.elmoc.interop.conftest import DATA
from tests.elmoc.word_vectors.fasttext_files import fasttext_bytes
from tests.elmoc.word_vectors.test_compact import WORDS, coded, compact, filtered
from tests.elmoc.word_vectors.test_subwords import MERGES, units

# Of any script and length, with spaces, marks, no character at all, and half of a surrogate pair.
STRINGS = [
    "",
    "the",
    "Zürich",
    "日本語",
    "x" * 300,
    "a b",
    "\t",
    "\0",
    "<s>",
    "</s>",
    "<unk>",
    "e\u0301",
    "🙂",
    "\ud800",
]


@dataclass(frozen=True)
class Source:
    """One kind of word vectors.

    make: the vectors, from an empty folder.
    known: strings that have a vector.
    unknown: how strings that it does not know are read: `vector` (none is unknown), `zeros`, or `refused`.
    exact: whether a word has the same vector to the last bit whatever is looked up with it.
    """

    make: Callable[[Path], WordVectors]
    known: list[str]
    unknown: str
    exact: bool = True


def fasttext(folder: Path) -> WordVectors:
    (folder / "v.bin").write_bytes(fasttext_bytes())
    return FastTextVectors(folder / "v.bin")


def text(folder: Path) -> WordVectors:
    (folder / "v.vec").write_text("2 3\nthe 1 2 3\nZürich -0.5 1e-3 0\n", encoding="utf-8")
    return TextVectors(folder / "v.vec")


def subwords(folder: Path) -> WordVectors:
    generator = torch.Generator().manual_seed(1)
    return SubwordVectors(torch.randn(len(units()), 6, generator=generator), Subwords(units(), MERGES))


def lexicon(*words: str) -> LexiconVectors:
    return LexiconVectors(torch.arange(1.0, 1 + 4 * len(words)).reshape(-1, 4), words)


SOURCES = {
    "fasttext": Source(fasttext, STRINGS, "vector"),
    "text": Source(text, ["the", "Zürich"], "zeros"),
    "random": Source(lambda folder: RandomVectors(seed=3, size=20), STRINGS, "vector"),
    "character CNN of bytes": Source(
        lambda folder: (
            read_original_elmo(DATA / "bilm_tf/options.json", DATA / "bilm_tf/lm_weights.hdf5").stored_vectors
        ),
        STRINGS,
        "vector",
        exact=False,
    ),
    "character CNN of a lexicon": Source(
        lambda folder: read_many_langs(DATA / "many_langs/words_and_characters").stored_vectors,
        STRINGS,
        "vector",
        exact=False,
    ),
    "words of a lexicon": Source(
        lambda folder: read_many_langs(DATA / "many_langs/words").stored_vectors, STRINGS, "vector", exact=False
    ),
    "subwords": Source(subwords, units(), "refused"),
    "compact, with n-grams": Source(lambda folder: compact(), [*WORDS, "unheard-of"], "vector"),
    "compact, summed": Source(
        lambda folder: CompactVectors.of_words(WORDS, coded("summed", len(WORDS))), WORDS, "zeros"
    ),
    "compact, filtered": Source(lambda folder: CompactVectors.of_words(WORDS, filtered()), WORDS, "zeros"),
    "lexicon": Source(lambda folder: lexicon("a", "the"), ["a", "the"], "zeros"),
    "lexicon with <unk>": Source(lambda folder: lexicon("a", UNKNOWN), STRINGS, "vector"),
}


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> Source:
    """Each source."""
    return SOURCES[request.param]


@pytest.fixture
def vectors(source: Source, tmp_path: Path) -> WordVectors:
    """Its vectors."""
    return source.make(tmp_path)


def strings(source: Source) -> list[str]:
    return source.known if source.unknown == "refused" else [*source.known, *STRINGS]


def test_every_kind_is_here() -> None:
    made = {type(source.make(Path())) for name, source in SOURCES.items() if name not in ("fasttext", "text")}
    assert {kind.file_name for kind in made - {RandomVectors}} == set(STORED_FILES)


def test_a_look_up_gives_a_finite_float32_row_for_every_string(source: Source, vectors: WordVectors) -> None:
    found = vectors.lookup(strings(source))
    assert found.shape == (len(strings(source)), vectors.size)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert vectors.lookup([]).shape == (0, vectors.size)


def test_a_word_has_the_same_vector_alone_in_a_batch_and_twice(source: Source, vectors: WordVectors) -> None:
    words = strings(source)
    found = vectors.lookup([*words, *reversed(words)])
    tolerance = 0 if source.exact else 1e-5
    np.testing.assert_allclose(found[: len(words)], found[len(words) :][::-1], rtol=tolerance, atol=tolerance)
    for word, row in zip(words, found, strict=False):
        np.testing.assert_allclose(vectors.lookup([word])[0], row, rtol=tolerance, atol=tolerance, err_msg=word)


def test_what_is_given_back_is_the_callers(source: Source, vectors: WordVectors) -> None:
    before = vectors.lookup(source.known[:2]).copy()
    vectors.lookup(source.known[:2])[:] = 7
    np.testing.assert_array_equal(vectors.lookup(source.known[:2]), before)


def test_unknown_strings_are_read_as_the_source_says(source: Source, vectors: WordVectors) -> None:
    unknown = [word for word in STRINGS if word not in source.known]
    if source.unknown == "zeros":
        assert not vectors.lookup(unknown).any()
        assert vectors.lookup(source.known).any(axis=1).all()
    elif source.unknown == "refused":
        for word in unknown:
            with pytest.raises(Exception, match="which has vectors of subwords"):
                vectors.lookup([word])
    else:
        assert vectors.lookup(["the"]).any()


def test_the_origin_opens_the_same_vectors(source: Source, vectors: WordVectors, tmp_path: Path) -> None:
    origin = vectors.origin
    if isinstance(vectors, StoredVectors):
        vectors.write(tmp_path / vectors.file_name)
        origin = str(tmp_path / vectors.file_name)
    again = open_word_vectors(origin)
    assert (again.fingerprint, again.size, again.origin) == (vectors.fingerprint, vectors.size, origin)
    tolerance = 0 if source.exact else 1e-5
    np.testing.assert_allclose(
        again.lookup(strings(source)), vectors.lookup(strings(source)), rtol=tolerance, atol=tolerance
    )


def test_fingerprints_tell_sources_apart(tmp_path: Path) -> None:
    fingerprints = [source.make(tmp_path).fingerprint for source in SOURCES.values()]
    assert len(set(fingerprints)) == len(SOURCES)
