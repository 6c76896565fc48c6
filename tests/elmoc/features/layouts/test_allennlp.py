"""The allennlp and bilm layouts: datasets, the map of sentences, keys of other tools; damaged and foreign maps."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.features.layouts.allennlp import MAP_KEY
from elmoc.features.reader import FeatureFile
from tests.elmoc.features.sentences import LINES, states_of, write_lines, write_sentences


@pytest.mark.parametrize(
    "content",
    ['{"The cat', '["The cat"]', '{"The cat": "5"}', '{"The cat": "x"}', '{"The cat": 1.5}', None, np.zeros(1)],
)
def test_a_broken_or_foreign_map_is_an_input_error(tmp_path: Path, content: Any) -> None:
    path = write_lines(tmp_path / "features.h5")
    with h5py.File(path, "a") as file:
        del file[MAP_KEY]
        if content is None:
            file.create_group(MAP_KEY)
        else:
            file[MAP_KEY] = [content] if isinstance(content, str) else content
    with FeatureFile(path) as features, pytest.raises(InputError, match=str(path)):
        features.find(["The", "cat"])


def test_foreign_keys_are_the_sentences_as_they_are(tmp_path: Path) -> None:
    """But those of ELMoForManyLangs have marks in them, which are no words."""
    literal = ["100 %25 sure", "a%#2", "see http:%2F%2Fx .", "%2E"]
    of_many_langs = ["The\tcat\t$period$", "and$backslash$or\tU$period$S$period$"]
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        for key in (*literal, *of_many_langs):
            file[key] = states_of(0, len(key.split()))
    lines = [*literal, "The cat .", "and/or U.S."]
    with FeatureFile(tmp_path / "foreign.h5") as features:
        assert set(features.sentence_map) == set(lines)
        for line in lines:
            assert features[line].shape == (3, len(line.split()), 4)
        features.check()


def test_bilm_is_the_layout_of_dump_bilm_embeddings(tmp_path: Path) -> None:
    sentences = [(line, states_of(index, len(line.split()))) for index, line in enumerate(LINES)]
    write_sentences(tmp_path / "f.h5", {}, sentences, layout="bilm")
    write_sentences(tmp_path / "top.h5", {}, [("a b", states_of(0, 2)[0])], layout="bilm")
    with h5py.File(tmp_path / "f.h5") as file, h5py.File(tmp_path / "top.h5") as top:
        assert sorted(file) == sorted(map(str, range(len(LINES))))
        for index, (_, states) in enumerate(sentences):
            assert file[str(index)].chunks is None
            np.testing.assert_array_equal(file[str(index)][...], states)
        assert top["0"].shape == (1, 2, 4)


@pytest.mark.parametrize(
    "lines", [["1/2 of it", "a / b / c", "x / y", "x / z", "x w"], ["a/0", "b/0 c"], ["and/or", "A dog ."]]
)
@pytest.mark.parametrize("track_order", [False, True])
def test_keys_of_other_tools_with_slashes_are_groups(tmp_path: Path, lines: list[str], track_order: bool) -> None:
    with h5py.File(tmp_path / "old.h5", "w", track_order=track_order) as file:
        for number, line in enumerate(lines):
            file[line] = np.full((3, len(line.split()), 4), number, np.float32)
    with FeatureFile(tmp_path / "old.h5") as features:
        assert (features.layout, len(features)) == ("allennlp", len(lines))
        features.check()
        for number, line in enumerate(lines):
            np.testing.assert_array_equal(features[line], np.full((3, len(line.split()), 4), number))
