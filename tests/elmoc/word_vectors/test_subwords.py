"""Subwords: how words are split, the file of their vectors, and models that read them."""

from dataclasses import replace
from pathlib import Path

import pytest
import tokenizers
import torch
from elmoc.corpus import BEGIN, END, UNKNOWN
from elmoc.errors import InputError, reading
from elmoc.features.dump import dump_features
from elmoc.features.options import DumpOptions
from elmoc.features.reader import FeatureFile
from elmoc.model import ElmoC
from elmoc.model_directory import write_model_directory
from elmoc.word_vectors.subwords import Subwords, SubwordVectors
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tiny import tiny_model

from elmoc.modules import LayerStates

MERGES = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("e", "r"), ("Ġ", "a")]
SENTENCES = [["the", "other", "tether"], ["Zürich"], [], ["a", "the", "x" * 9, "b"]]


def units() -> list[str]:
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    return ["Ġthe", BEGIN, *alphabet, *(left + right for left, right in MERGES if left + right != "Ġthe"), END]


def random_vectors() -> SubwordVectors:
    generator = torch.Generator().manual_seed(1)
    return SubwordVectors(torch.randn(len(units()), 6, generator=generator), Subwords(units(), MERGES))


@pytest.fixture(scope="module")
def stored() -> SubwordVectors:
    return random_vectors()


@pytest.fixture
def model(stored: SubwordVectors, tmp_path: Path) -> Path:
    """A model directory with random weights that reads the units."""
    write_model_directory(tmp_path / "model", replace(tiny_model(vectors=stored), stored_vectors=stored))
    return tmp_path / "model"


def plain_split(word: str) -> list[str]:
    """BPE as Sennrich et al. (2016) have it: the first merge that applies, at all places, again and again."""
    alphabet = {bytes([byte]): character for byte, character in byte_characters().items()}
    symbols = [alphabet[bytes([byte])] for byte in f" {word}".encode()]
    while True:
        pairs = list(zip(symbols, symbols[1:], strict=False))
        merge = next((merge for merge in MERGES if merge in pairs), None)
        if merge is None:
            return symbols
        place = pairs.index(merge)
        symbols[place : place + 2] = ["".join(merge)]


def byte_characters() -> dict[int, str]:
    """The printable character of each byte (Radford et al. 2019)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + place) for place, byte in enumerate(others)}


@settings(deadline=None)
@given(words=st.lists(st.text("thera Zü😀", max_size=8).filter(lambda word: " " not in word)))
def test_words_are_split_as_a_plain_program_splits_them(words: list[str]) -> None:
    split = Subwords(units(), MERGES).split([words, [BEGIN, "\ud800"]])
    assert split == [[plain_split(word) for word in words], [["Ġ", "<", "s", ">"], ["Ġ", "?"]]]
    assert Subwords([*units(), UNKNOWN], MERGES).split([[UNKNOWN]]) == [[[UNKNOWN]]], "as in a corpus"


@pytest.mark.parametrize("missing", ["Ġa", "z", END])
def test_units_that_lack_something_are_refused(missing: str) -> None:
    lacking = [unit for unit in units() if unit != missing]
    twice, joined = [*units(), "Ġthe"], [*units(), "<unk", UNKNOWN]
    for some_units, merges in ((lacking, MERGES), (twice, MERGES), (joined, [("<unk", ">")])):
        with pytest.raises(InputError, match="here"), reading("here"):
            Subwords(some_units, merges)


def test_the_fingerprint_is_of_vectors_units_and_merges(stored: SubwordVectors) -> None:
    for changed in (
        SubwordVectors(stored.vectors + 1, Subwords(units(), MERGES)),
        SubwordVectors(stored.vectors, Subwords([*units()[:-2], END, units()[-2]], MERGES)),
        SubwordVectors(stored.vectors, Subwords(units(), MERGES[::-1])),
    ):
        assert changed.fingerprint != stored.fingerprint


# models that read subwords


@pytest.mark.parametrize("pooling", ["first", "last", "mean"])
def test_states_of_words_are_those_of_their_units(model: Path, stored: SubwordVectors, pooling: str) -> None:
    elmo = ElmoC.from_pretrained(model, subword_pooling=pooling, precision="float32")
    table = dict(zip(stored.subwords.units, stored.vectors, strict=True))
    for sentence, states in zip(SENTENCES, elmo.embed_batch(SENTENCES), strict=True):
        split = [plain_split(word) for word in sentence]
        read = torch.stack([table[unit] for unit in (BEGIN, *(unit for word in split for unit in word), END)])
        with torch.no_grad():
            [all_states] = elmo.encoder(read[None], torch.tensor([len(read)]))  # [L + 1, m + 2, 2P]
        assert states.shape == (3, len(sentence), 10)
        place = 1
        for word, of_word in zip(split, states.unbind(1), strict=True):
            own = all_states[:, place : place + len(word)]
            expected = {"first": own[:, 0], "last": own[:, -1], "mean": own.mean(dim=1)}[pooling]
            torch.testing.assert_close(of_word, expected, rtol=1e-4, atol=1e-5)
            place += len(word)


def test_all_ways_of_reading_give_the_same_states(model: Path) -> None:
    elmo = ElmoC.from_pretrained(model, subword_pooling="mean", precision="float32")
    states = elmo.embed_batch(SENTENCES)
    for way, found in {
        "one by one": [elmo.embed(sentence) for sentence in SENTENCES],
        "in a stream": list(elmo.embed_sentences(SENTENCES)),
    }.items():
        torch.testing.assert_close(found, states, rtol=1e-4, atol=1e-5, msg=way)
    padded, mask = LayerStates(elmo)(SENTENCES)
    trained, _ = LayerStates(elmo, requires_grad=True).eval()(SENTENCES)
    for row, trained_row, here, expected in zip(padded, trained, mask, states, strict=True):
        assert int(here.sum()) == expected.shape[1] + 2
        torch.testing.assert_close(row[:, here][:, 1:-1], expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(trained_row[:, here][:, 1:-1].detach(), expected, rtol=1e-4, atol=1e-5)


def test_features_are_dumped_and_say_how_they_were_pooled(model: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the other\n\nZürich a\n")
    for pooling in ("first", "mean"):
        elmo = ElmoC.from_pretrained(model, subword_pooling=pooling, precision="float32")
        pair = tmp_path / "text.txt", tmp_path / f"{pooling}.h5"
        dump_features(elmo, [pair], DumpOptions(allow_empty=True))
        with FeatureFile(tmp_path / f"{pooling}.h5") as features:
            assert features.attributes["pooling"] == pooling
            torch.testing.assert_close(
                torch.from_numpy(features[0]), elmo.embed(["the", "other"]), rtol=1e-4, atol=1e-5
            )
    assert ElmoC.from_pretrained(model, precision="float32").identity["pooling"] == "first"
