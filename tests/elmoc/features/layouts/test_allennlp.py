"""The allennlp layout: its datasets and its map of sentences, and maps that are damaged or foreign."""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from elmoc.errors import InputError
from elmoc.features.converting.convert import convert_features
from elmoc.features.layouts.allennlp import MAP_KEY
from elmoc.features.reader import FeatureFile
from tests.elmoc.features.sentences import LINES, states_of, write_sentences


def test_layout_is_that_of_the_allennlp_elmo_command(path: Path) -> None:
    with h5py.File(path) as file:
        assert set(file) == {*map(str, range(len(LINES))), MAP_KEY}
        assert file[MAP_KEY].shape == (1,)
        sentences = json.loads(file[MAP_KEY][0])
        assert sentences == {LINES[0]: "3", "a / b/c": "1", LINES[2]: "2", "//": "4"}
        assert all(file[key].chunks is None for key in file), "contiguous"


def test_sentences_are_found_by_their_words(path: Path) -> None:
    with FeatureFile(path) as file:
        assert file.find(["a", "/", "b/c"]) == 1
        assert file.find(["Zürich", "—", "naïve", "😀"]) == 2
        assert file.find(["//"]) == 4
        assert file.find(["The", "cat", "sat", "."]) == 3, "of duplicates the last"
        assert file.find(["The", "cat", "sat"]) is None


def test_without_the_map_sentences_have_numbers_only(tmp_path: Path) -> None:
    write_sentences(tmp_path / "f.h5", {}, [("a b", states_of(0, 2))], sentence_map=False)
    with FeatureFile(tmp_path / "f.h5") as file:
        assert len(file) == 1
        assert file[0].shape == (3, 2, 4)
        with pytest.raises(InputError, match=f"no {MAP_KEY} map.*--forget-sentences"):
            file.find(["a", "b"])


def test_a_broken_map_is_an_input_error(path: Path) -> None:
    with h5py.File(path, "a") as file:
        file[MAP_KEY][0] = '{"The cat'
    with FeatureFile(path) as features, pytest.raises(InputError, match=MAP_KEY):
        features.find(["The", "cat"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('["The cat"]', "is not a JSON object of sentences"),
        ("null", "is not a JSON object of sentences"),
        ('{"The cat": "5"}', r'the sentence "The cat" the index "5", but the file has 0 to 4'),
        ('{"The cat": "-1"}', 'the index "-1"'),
        ('{"The cat": "x"}', 'the index "x"'),
        ('{"The cat": null}', "the index null"),
        ('{"The cat": true}', "the index true"),
        ('{"The cat": 1.5}', "the index 1.5"),
        ('{"The cat": ["1"]}', r'the index \["1"\]'),
        (None, "is damaged"),
        (np.zeros(1), "is damaged"),
        (np.zeros(0), "is damaged"),
    ],
)
def test_a_foreign_map_is_an_input_error(path: Path, content: Any, message: str) -> None:
    with h5py.File(path, "a") as file:
        del file[MAP_KEY]
        if content is None:
            file.create_group(MAP_KEY)
        else:
            file[MAP_KEY] = [content] if isinstance(content, str) else content
    with FeatureFile(path) as features, pytest.raises(InputError, match=message) as caught:
        features.find(["The", "cat"])
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_foreign_map_may_have_numbers(path: Path) -> None:
    with h5py.File(path, "a") as file:
        file[MAP_KEY][0] = '{"The cat": 4}'
    with FeatureFile(path) as features:
        assert features.find(["The", "cat"]) == 4


def test_of_a_sentence_that_is_twice_in_a_foreign_map_the_last_counts(path: Path) -> None:
    with h5py.File(path, "a") as file:
        file[MAP_KEY][0] = '{"The cat": "0", "The cat": "1"}'
    with FeatureFile(path) as features:
        assert features.find(["The", "cat"]) == 1


def test_foreign_keys_are_the_sentences_as_they_are(tmp_path: Path) -> None:
    """In a conversion, too; but those of ELMoForManyLangs have marks in them, which are no words."""
    literal = ["100 %25 sure", "a%#2", "see http:%2F%2Fx .", "%2E"]
    of_many_langs = ["The\tcat\t$period$", "and$backslash$or\tU$period$S$period$"]
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        for key in (*literal, *of_many_langs):
            file[key] = states_of(0, len(key.split()))
    lines = [*literal, "The cat .", "and/or U.S."]
    convert_features(tmp_path / "foreign.h5", tmp_path / "converted.h5", layout="allennlp")
    for name in ("foreign.h5", "converted.h5"):
        with FeatureFile(tmp_path / name) as features:
            assert set(features.sentence_map) == set(lines)
            for line in lines:
                assert features[line].shape == (3, len(line.split()), 4)
            features.check()
