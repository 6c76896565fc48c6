"""Character CNN vectors: the same as the network by itself, however words are batched; and their file."""

import shutil
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from downstream.inputs.model_states import ModelStates
from downstream.inputs.sentence import make_sentence
from downstream.inputs.word_table import WordTable
from elmoc import ElmoC
from elmoc.__main__ import main
from elmoc.errors import InputError
from elmoc.interop.many_langs import read_many_langs
from elmoc.interop.original_elmo import read_original_elmo
from elmoc.word_vectors import character_cnn
from elmoc.word_vectors.character_cnn import FILE_NAME, CharacterCnnVectors, StoredCharacterCnn
from elmoc.word_vectors.characters import LexiconSpelling, Utf8Spelling, WordIds
from elmoc.word_vectors.opening import open_word_vectors, read_stored
from tests.elmoc.interop.conftest import DATA
from tests.elmoc.interop.references import character_ids

ORIGINAL = DATA / "bilm_tf/options.json", DATA / "bilm_tf/lm_weights.hdf5"
MANY_LANGS = DATA / "many_langs/words_and_characters"
WORDS = [
    "",
    "a",
    "the",
    "Zürich",
    "日本語",
    "x" * 47,
    "x" * 48,
    "x" * 49,
    "é" * 60,
    "<S>",
    "</S>",
    "<s>",
    "</s>",
    "the",
]


@pytest.fixture(scope="module", params=["original", "many_langs"])
def stored(request: pytest.FixtureRequest) -> StoredCharacterCnn:
    """A character CNN of each kind."""
    model = read_original_elmo(*ORIGINAL) if request.param == "original" else read_many_langs(MANY_LANGS)
    return model.character_cnn


@pytest.fixture
def file(stored: StoredCharacterCnn, tmp_path: Path) -> Path:
    """Its file."""
    stored.write(tmp_path / FILE_NAME)
    return tmp_path / FILE_NAME


def whole_rows(vectors: CharacterCnnVectors, words: list[str]) -> np.ndarray:
    """Each word by itself, with all of its padding."""
    spelling, ids, most = vectors._spelling, vectors._words, vectors.stored.record.network.max_characters_per_token
    assert spelling is not None
    rows = [spelling.rows([spelling.characters(word)], most) for word in words]
    assert all(row.shape == (1, most) for row in rows)
    with torch.inference_mode():
        return np.concatenate(
            [
                vectors._network(torch.from_numpy(row), torch.from_numpy(ids.rows([word])) if ids else None).numpy()
                for word, row in zip(words, rows, strict=True)
            ]
        )


def test_batches_of_like_length_change_nothing(stored: StoredCharacterCnn, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = CharacterCnnVectors(stored, origin="here")
    expected = whole_rows(vectors, WORDS)
    np.testing.assert_allclose(vectors.lookup(WORDS), expected, atol=1e-6)
    monkeypatch.setattr(character_cnn, "_BLOCK_WORDS", 5)
    monkeypatch.setattr(character_cnn, "_BATCH_NUMBERS", 2000)
    np.testing.assert_allclose(vectors.lookup(WORDS), expected, atol=1e-6)
    assert vectors.lookup([]).shape == (0, vectors.size)
    assert vectors.lookup(WORDS).dtype == np.float32


@lru_cache
def original_vectors() -> CharacterCnnVectors:
    return CharacterCnnVectors(read_original_elmo(*ORIGINAL).character_cnn, origin="here")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.characters(), max_size=60), max_size=5))
def test_any_string_has_a_vector(words: list[str]) -> None:
    vectors = original_vectors()
    np.testing.assert_allclose(vectors.lookup(words), whole_rows(vectors, words) if words else 0, atol=1e-6)


@settings(deadline=None)
@given(st.text(st.characters(), max_size=60), st.integers(3, 60))
def test_words_are_spelled_as_the_original_tools_spell_them(word: str, most: int) -> None:
    spelling = Utf8Spelling(most)
    row = spelling.rows([spelling.characters(word)], most)[0]
    if word not in ("<s>", "</s>"):
        assert row.tolist() == character_ids(word, most)
    assert spelling.rows([spelling.characters("<s>")], most)[0].tolist() == character_ids("<S>", most)
    assert spelling.rows([spelling.characters("</s>")], most)[0].tolist() == character_ids("</S>", most)


def test_lexicons_spell_as_the_package_does() -> None:
    names = ["a", "b", "<bow>", "<eow>", "<bos>", "<eos>", "<oov>", "<pad>"]
    ids = {name: index for index, name in enumerate(names)}
    spelling = LexiconSpelling(6, ids)
    spelled = [spelling.characters(word) for word in ("ab", "bcaba", "<s>", "<eos>", "")]
    assert spelling.rows(spelled, 6).tolist() == [
        [3, 0, 1, 2, 7, 7],
        [3, 1, 6, 0, 1, 2],
        [3, 4, 2, 7, 7, 7],
        [3, 5, 2, 7, 7, 7],
        [3, 2, 7, 7, 7, 7],
    ]
    words = WordIds(6, {"<oov>": 0, "<bos>": 1, "abab": 2})
    assert words.rows(["abab", "ababa", "aba", "<s>", "</s>"]).tolist() == [2, 2, 0, 1, 0]
    with pytest.raises(InputError, match=r"lexicon of characters lacks <bow>, <pad>"):
        LexiconSpelling(6, {name: 0 for name in names if name not in ("<bow>", "<pad>")})


def test_the_file_comes_back(stored: StoredCharacterCnn, file: Path, tmp_path: Path) -> None:
    vectors = open_word_vectors(str(file))
    assert vectors.origin == str(file)
    assert vectors.fingerprint == stored.fingerprint
    assert np.array_equal(vectors.lookup(WORDS), CharacterCnnVectors(stored, origin="here").lookup(WORDS))
    again = read_stored(file)
    again.write(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == file.read_bytes()
    assert again.kept.keys() == stored.kept.keys()


def test_the_fingerprint_is_of_all_that_vectors_depend_on(stored: StoredCharacterCnn, file: Path) -> None:
    again = read_stored(file)
    kept = dict(again.kept)
    for name, tensor in again.weights.items():
        changed = StoredCharacterCnn(
            again.record, {**again.weights, name: tensor + 1}, again.characters, again.words, kept
        )
        assert changed.fingerprint != stored.fingerprint
    without = StoredCharacterCnn(again.record, again.weights, again.characters, again.words)
    assert without.fingerprint == stored.fingerprint, "what only an export needs"
    if again.words:
        words = {**again.words, "more": 1}
        assert (
            StoredCharacterCnn(again.record, again.weights, again.characters, words).fingerprint != stored.fingerprint
        )


def test_a_truncated_file_or_another_is_one_sentence(file: Path, tmp_path: Path) -> None:
    content = file.read_bytes()
    for share in (0.0, 0.01, 0.5, 0.999):
        file.write_bytes(content[: int(share * len(content))])
        with pytest.raises(InputError, match=rf"{file} is truncated or damaged .*: import the model again, or copy"):
            open_word_vectors(str(file))
    save_file({"x": torch.zeros(2)}, file)
    with pytest.raises(InputError, match=rf"{file} is not of the format elmoc-character-cnn or elmoc-sub"):
        open_word_vectors(str(file))
    with pytest.raises(InputError, match=rf"{tmp_path / 'none'}\.safetensors does not exist"):
        open_word_vectors(str(tmp_path / "none.safetensors"))
    file.unlink()
    with pytest.raises(InputError, match=rf"{tmp_path} has no {FILE_NAME} or .* `elmoc import-elmo`"):
        open_word_vectors(str(tmp_path))


def rewritten(file: Path, change: Callable[[dict[str, torch.Tensor], dict[str, str]], object]) -> None:
    from safetensors import safe_open

    with safe_open(file, framework="pt") as opened:
        metadata = dict(opened.metadata())
    tensors = load_file(file)
    change(tensors, metadata)
    save_file(tensors, file, metadata=metadata)


CHANGES: dict[str, tuple[Callable[[dict[str, torch.Tensor], dict[str, str]], object], str]] = {
    "version": (lambda t, m: m.update(elmoc=m["elmoc"].replace('"version": 1', '"version": 2')), r"has version 2 of"),
    "JSON": (lambda t, m: m.update(elmoc="{"), r"is not valid JSON"),
    "width": (
        lambda t, m: m.update(elmoc=m["elmoc"].replace('"projection_size": ', '"projection_size": 1')),
        r"projection\.(weight|bias) has the shape",
    ),
    "missing": (lambda t, m: t.pop("projection.bias"), r"lacks tensors: projection\.bias"),
    "unknown": (lambda t, m: t.update(more=torch.zeros(2)), r"has unknown tensors: more"),
    "not finite": (lambda t, m: t["projection.bias"].fill_(torch.nan), r"projection\.bias has a number that is not"),
    "lexicon": (
        lambda t, m: t.update({"lexicon.words": torch.zeros(3)}),
        r"lexicon\.words has the type torch\.float32",
    ),
    "spelling": (
        lambda t, m: m.update(elmoc=m["elmoc"].replace('"utf-8"', '"morse"').replace('"lexicon"', '"morse"')),
        r"spelling must be one of utf-8, lexicon, not 'morse'",
    ),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_content_that_does_not_fit_is_one_sentence(
    file: Path, change: Callable[[dict[str, torch.Tensor], dict[str, str]], object], message: str
) -> None:
    rewritten(file, change)
    with pytest.raises(InputError, match=rf"{file}.*{message}.*: .*(import the model again|damaged)"):
        open_word_vectors(str(file))


def test_vectors_that_overflow_are_refused(stored: StoredCharacterCnn) -> None:
    weights = {**stored.weights, "projection.weight": torch.full_like(stored.weights["projection.weight"], 3e38)}
    vectors = CharacterCnnVectors(
        StoredCharacterCnn(stored.record, weights, stored.characters, stored.words), origin="x"
    )
    with pytest.raises(InputError, match=r"x: the vector of 'the' is not finite"):
        vectors.lookup(["the"])


def test_damage_in_a_model_directory_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_original_elmo(*ORIGINAL).write(tmp_path / "model")
    assert main(["check", str(tmp_path / "model")]) == 0
    path = tmp_path / "model" / FILE_NAME
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert main(["check", str(tmp_path / "model")]) == 1
    assert f"{FILE_NAME} is damaged (its content is not what was written)" in capsys.readouterr().err
    path.write_bytes(content[:-8])
    with pytest.raises(InputError, match=rf"{FILE_NAME} is truncated or changed"):
        ElmoC.from_pretrained(tmp_path / "model")


def test_probes_read_the_model_and_its_vectors(tmp_path: Path) -> None:
    read_original_elmo(*ORIGINAL).write(tmp_path / "model")
    sentence = make_sentence(["Zürich", "banks"], file=tmp_path, line=1)
    [states] = ModelStates(tmp_path / "model", sentences=[sentence], memory_limit=1e9).lookup([sentence])
    assert states.shape == (3, 2, 32)
    table = WordTable(str(tmp_path / "model"), sentences=[sentence])
    torch.testing.assert_close(table.vectors, states[0, :, :16], atol=1e-6, rtol=0)
    shutil.rmtree(tmp_path / "model")
