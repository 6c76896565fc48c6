"""Character CNN vectors: the same as the network by itself, however words are batched; and their file."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from elmoc.errors import InputError
from elmoc.interop.many_langs import read_many_langs
from elmoc.interop.original_elmo import read_original_elmo
from elmoc.word_vectors.character_cnn import CHARACTERS, CharacterCnnVectors, spelled, word_rows
from elmoc.word_vectors.character_cnn import WORDS as WORDS_OF
from elmoc.word_vectors.opening import open_word_vectors
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from tests.elmoc.interop.conftest import DATA
from tests.elmoc.interop.references import character_ids

from elmoc.word_vectors import character_cnn

ORIGINAL = DATA / "bilm_tf/options.json", DATA / "bilm_tf/lm_weights.hdf5"
MANY_LANGS = DATA / "many_langs/words_and_characters"
WORDS = ["", "a", "the", "Zürich", "日本語", "x" * 47, "x" * 49, "é" * 60, "<S>", "</S>", "<s>", "</s>", "the"]


@pytest.fixture(scope="module", params=["original", "many_langs"])
def stored(request: pytest.FixtureRequest) -> CharacterCnnVectors:
    """A character CNN of each kind."""
    model = read_original_elmo(*ORIGINAL) if request.param == "original" else read_many_langs(MANY_LANGS)
    return model.stored_vectors


@pytest.fixture
def file(stored: CharacterCnnVectors, tmp_path: Path) -> Path:
    """Its file."""
    stored.write(tmp_path / CharacterCnnVectors.file_name)
    return tmp_path / CharacterCnnVectors.file_name


def whole_rows(vectors: CharacterCnnVectors, words: list[str]) -> np.ndarray:
    """Each word by itself, with all of its padding."""
    ids, most = vectors.lexicons.get(WORDS_OF), vectors.record.network.max_characters_per_token
    rows = [spelled([word], most, vectors.lexicons.get(CHARACTERS)) for word in words]
    assert all(row.shape == (1, most) for row in rows)
    with torch.inference_mode():
        return np.concatenate(
            [
                vectors._network(
                    torch.from_numpy(row), torch.from_numpy(word_rows([word], most, ids)) if ids else None
                ).numpy()
                for word, row in zip(words, rows, strict=True)
            ]
        )


def test_batches_of_like_length_change_nothing(stored: CharacterCnnVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, expected = stored, whole_rows(stored, WORDS)
    np.testing.assert_allclose(vectors.lookup(WORDS), expected, atol=1e-6)
    monkeypatch.setattr(character_cnn, "_BATCH_NUMBERS", 2000)
    np.testing.assert_allclose(vectors.lookup(WORDS), expected, atol=1e-6)


@settings(deadline=None)
@given(st.text(st.characters(), max_size=60), st.integers(3, 60))
def test_words_are_spelled_as_the_original_tools_spell_them(word: str, most: int) -> None:
    row, begin, end = spelled([word, "<s>", "</s>"], most)
    if word not in ("<s>", "</s>"):
        assert row.tolist() == character_ids(word, most)
    assert (begin.tolist(), end.tolist()) == (character_ids("<S>", most), character_ids("</S>", most))


def test_lexicons_spell_as_the_package_does() -> None:
    names = ["a", "b", "<bow>", "<eow>", "<bos>", "<eos>", "<oov>", "<pad>"]
    ids = {name: index for index, name in enumerate(names)}
    assert spelled(["ab", "bcaba", "<s>", "<eos>", ""], 6, ids).tolist() == [
        [3, 0, 1, 2, 7, 7],
        [3, 1, 6, 0, 1, 2],
        [3, 4, 2, 7, 7, 7],
        [3, 5, 2, 7, 7, 7],
        [3, 2, 7, 7, 7, 7],
    ]
    rows = word_rows(["abab", "ababa", "aba", "<s>", "</s>"], 6, {"<oov>": 0, "<bos>": 1, "abab": 2})
    assert rows.tolist() == [2, 2, 0, 1, 0]


def test_the_fingerprint_is_of_all_that_vectors_depend_on(stored: CharacterCnnVectors) -> None:
    lexicons = stored.lexicons
    for name, tensor in stored.weights.items():
        changed = CharacterCnnVectors(stored.record, {**stored.weights, name: tensor + 1}, lexicons=lexicons)
        assert changed.fingerprint != stored.fingerprint
    without = CharacterCnnVectors(stored.record, stored.weights, lexicons=lexicons)
    assert without.fingerprint == stored.fingerprint
    if WORDS_OF in lexicons:
        more = {**lexicons, WORDS_OF: {**lexicons[WORDS_OF], "more": 1}}
        assert CharacterCnnVectors(stored.record, stored.weights, lexicons=more).fingerprint != stored.fingerprint


def test_a_truncated_file_or_another_is_refused(file: Path, tmp_path: Path) -> None:
    content = file.read_bytes()
    for share in (0.0, 0.01, 0.5, 0.999):
        file.write_bytes(content[: int(share * len(content))])
        with pytest.raises(InputError, match=str(file)):
            open_word_vectors(str(file))
    save_file({"x": torch.zeros(2)}, file)
    for path in (file, tmp_path / "none.safetensors", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(InputError, match=str(path)):
            open_word_vectors(str(path))


def test_content_that_does_not_fit_is_refused(stored: CharacterCnnVectors, tmp_path: Path) -> None:
    about, tensors = stored.description(), stored.tensors()
    wide = about | {"network": about["network"] | {"projection_size": 99}}
    without = {name: each for name, each in tensors.items() if name != "projection.bias"}
    wrong = tensors | {"lexicon.words": torch.zeros(3)}
    for description, content in ((wide, tensors), (about, without), (about, wrong)):
        save_file(content, tmp_path / CharacterCnnVectors.file_name, metadata={"elmoc": json.dumps(description)})
        with pytest.raises(InputError, match=CharacterCnnVectors.file_name):
            open_word_vectors(tmp_path)
