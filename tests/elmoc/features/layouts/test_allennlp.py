"""The allennlp layout: its datasets and its map of sentences, and maps that are damaged or foreign."""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from elmoc.errors import InputError
from elmoc.features.convert import convert_features
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
        with pytest.raises(InputError, match="--forget-sentences"):
            file.find(["a", "b"])


@pytest.mark.parametrize(
    "content",
    ['{"The cat', '["The cat"]', '{"The cat": "5"}', '{"The cat": "x"}', '{"The cat": 1.5}', None, np.zeros(1)],
)
def test_a_broken_or_foreign_map_is_an_input_error(path: Path, content: Any) -> None:
    with h5py.File(path, "a") as file:
        del file[MAP_KEY]
        if content is None:
            file.create_group(MAP_KEY)
        else:
            file[MAP_KEY] = [content] if isinstance(content, str) else content
    with FeatureFile(path) as features, pytest.raises(InputError, match=str(path)):
        features.find(["The", "cat"])


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
