"""The contract of word vectors: what holds for every source, and for whatever strings."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from elmoc.corpus import UNKNOWN
from elmoc.errors import InputError
from elmoc.interop.many_langs import read_many_langs
from elmoc.interop.original_elmo import read_original_elmo
from elmoc.word_vectors.coded_rows import PlainRows
from elmoc.word_vectors.compact import CompactVectors
from elmoc.word_vectors.fasttext import FastTextVectors
from elmoc.word_vectors.joined import JoinedVectors
from elmoc.word_vectors.opening import STORED_FILES, open_joined, open_word_vectors
from elmoc.word_vectors.pieces import Pieces, fit_composition
from elmoc.word_vectors.sources import RandomVectors, TextVectors, WordVectors
from elmoc.word_vectors.stored import LexiconVectors, StoredVectors
from tests.elmoc.interop.conftest import DATA
from tests.elmoc.word_vectors.fasttext_files import fasttext_bytes
from tests.elmoc.word_vectors.test_alone import alone
from tests.elmoc.word_vectors.test_compact import WORDS, coded, compact
from tests.elmoc.word_vectors.test_subwords import random_vectors, units
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer

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


def pieces(folder: Path) -> CompactVectors:
    """Rows of two words, and of the pieces of a tokeniser that cuts and pads sentences, as published ones do."""
    vocabulary = {piece: row for row, piece in enumerate(["[PAD]", "[UNK]", "un", "##heard", "the", "x"])}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=3)
    table = np.random.default_rng(4).standard_normal((8, 5)).astype(np.float16)
    composition = np.random.default_rng(5).standard_normal((17, 5)).astype(np.float16)
    parts = Pieces(tokenizer.to_str().encode(), PlainRows(table[2:]), composition)
    counts = np.array([3, 1])
    return CompactVectors.of_words(["the", "Zürich"], PlainRows(table[:2]), parts, about="a teacher", counts=counts)


def joined(folder: Path) -> JoinedVectors:
    return JoinedVectors([pieces(folder), compact()], [2.0, 0.5])


def joined_record(folder: Path) -> JoinedVectors:
    JoinedVectors([fasttext(folder), text(folder)], [1.0, 3.0]).write_record(folder / "both.json")
    return open_joined(str(folder / "both.json"))


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
    "subwords": Source(lambda folder: random_vectors(), units(), "refused"),
    "compact, with n-grams": Source(lambda folder: compact(), [*WORDS, "unheard-of"], "vector"),
    "compact, summed": Source(
        lambda folder: CompactVectors.of_words(WORDS, coded("summed", len(WORDS))), WORDS, "zeros"
    ),
    "ALONE": Source(lambda folder: alone(), STRINGS, "vector", exact=False),
    "compact, with pieces": Source(pieces, ["the", "Zürich", "unheard", "un-heard", "x" * 101], "vector"),
    "joined": Source(joined, ["the", *WORDS], "vector"),
    "joined by a record": Source(joined_record, STRINGS, "vector"),
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
    of_files = ("fasttext", "text", "joined by a record")
    made = {type(source.make(Path())) for name, source in SOURCES.items() if name not in of_files}
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
    if isinstance(vectors, StoredVectors) and not origin.endswith(".json"):
        vectors.write(tmp_path / vectors.file_name)
        origin = str(tmp_path / vectors.file_name)
    again = open_word_vectors(origin)
    assert (again.fingerprint, again.size, again.origin) == (vectors.fingerprint, vectors.size, origin)
    tolerance = 0 if source.exact else 1e-5
    np.testing.assert_allclose(
        again.lookup(strings(source)), vectors.lookup(strings(source)), rtol=tolerance, atol=tolerance
    )


def test_words_outside_a_lexicon_are_unknown_and_each_row_is_a_words() -> None:
    assert lexicon("a", UNKNOWN, "b").lookup(["b", "x"]).tolist() == [[9, 10, 11, 12], [5, 6, 7, 8]]
    with pytest.raises(InputError, match="1, None"):
        lexicon("a", "a")


def test_fingerprints_tell_sources_apart(tmp_path: Path) -> None:
    fingerprints = [source.make(tmp_path).fingerprint for source in SOURCES.values()]
    assert len(set(fingerprints)) == len(SOURCES)


def test_strings_outside_are_composed_of_their_pieces(tmp_path: Path) -> None:
    vectors = pieces(tmp_path)
    assert isinstance(vectors.parts, Pieces)
    rows = vectors.parts.rows.vectors(np.arange(6)).astype(float)
    expected = [rows[4], np.zeros(5)]
    for numbers in ([2, 3], [2, 1, 4, 5]):
        mean = rows[numbers].mean(axis=0)
        features = [*mean, *rows[numbers[0]], *rows[numbers[-1]], 1 / len(numbers), 1]
        expected.append(mean + np.array(features) @ vectors.parts.composition.astype(float))
    found = vectors.parts.vectors(["the", " ", "unheard", "un - the x"])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    for damaged in ({"rows": PlainRows(rows[:5].astype(np.float16))}, {"composition": np.zeros((16, 5), np.float16)}):
        with pytest.raises(InputError, match=r"5 rows for 6 pieces|composition"):
            replace(vectors.parts, **damaged)


def test_the_composition_is_fitted_to_words_of_several_pieces() -> None:
    generator = np.random.default_rng(0)
    rows = PlainRows(generator.standard_normal((40, 4)).astype(np.float16))
    table = rows.vectors(np.arange(40)).astype(float)
    divided = [generator.integers(40, size=length).tolist() for length in generator.integers(0, 5, size=3000)]
    wanted = np.zeros((3000, 4))
    for place, numbers in enumerate(divided):
        if len(numbers) > 1:
            wanted[place] = 2 * table[numbers[0]] - table[numbers[-1]] + 3 / len(numbers)
    composition = fit_composition(divided, rows, wanted)
    exact = np.concatenate([-np.eye(4), 2 * np.eye(4), -np.eye(4), np.full((1, 4), 3), np.zeros((1, 4))])
    np.testing.assert_allclose(composition, exact, atol=0.1)
    assert not fit_composition([[1], []], rows, table[:2]).any()


def test_joined_vectors_stand_side_by_side_and_are_those_that_were_joined(tmp_path: Path) -> None:
    both = joined_record(tmp_path)
    expected = np.concatenate([fasttext(tmp_path).lookup(STRINGS), 3 * text(tmp_path).lookup(STRINGS)], axis=1)
    np.testing.assert_array_equal(both.lookup(STRINGS), expected)
    (tmp_path / "v.vec").write_text("the 4 5 6\nZürich 7 8 9\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"which .*both.json joins"):
        open_joined(str(tmp_path / "both.json"))
    # Moved together, they are found.
    (tmp_path / "there").mkdir()
    text(tmp_path / "there")
    for name in ("both.json", "v.bin"):
        (tmp_path / name).rename(tmp_path / "there" / name)
    (tmp_path / "v.vec").unlink()
    np.testing.assert_array_equal(open_joined(str(tmp_path / "there/both.json")).lookup(STRINGS), expected)
