"""Lines of any length: dumped in pieces, to the same numbers as in one."""

from pathlib import Path

import numpy as np
import pytest
import torch

from elmoc import FeatureFile
from elmoc import model as model_module
from elmoc.features import dump, states
from elmoc.kernels.inference import inference_kernels
from tests.elmoc.features.sentences import dumped

LINES = ["The cat sat .", "w " * 21, "a", " ".join(f"w{index}" for index in range(57)), "x y " * 5, "b", "end " * 30]


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    (tmp_path / "in.txt").write_text("\n".join(LINES) + "\n")
    return tmp_path / "in.txt"


def small_windows(monkeypatch: pytest.MonkeyPatch, words: int) -> None:
    monkeypatch.setattr(model_module, "WINDOW_WORDS", words)
    monkeypatch.setattr(states, "WINDOW_WORDS", words)


@pytest.mark.usefixtures("registers")
@pytest.mark.parametrize(
    ("layout", "options"),
    [
        ("allennlp", []),
        ("bilm", ["--average"]),
        ("flat", ["--layers", "2,0", "--dtype", "float16"]),
        ("flat", ["--top", "--compress"]),
        ("allennlp", ["--carry-state"]),
    ],
)
def test_pieces_make_what_one_piece_is(
    model_path: Path,
    sentences: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    layout: str,
    options: list[str],
) -> None:
    expected = dumped(model_path, sentences, tmp_path / "whole.h5", *options, "--format", layout)
    small_windows(monkeypatch, 8)
    if "--carry-state" in options:
        monkeypatch.setattr(dump, "words_of_a_part", lambda *_: 25)
    found = dumped(model_path, sentences, tmp_path / "pieces.h5", *options, "--format", layout)
    exact = inference_kernels(torch.float32) is not None
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        if exact:
            np.testing.assert_array_equal(ours, theirs)
        else:
            np.testing.assert_allclose(ours, theirs, atol=1e-5 if theirs.dtype == np.float32 else 2e-3)


def test_a_word_of_many_characters(model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a b\n" + "x" * 1_000_000 + "\n")
    assert [array.shape[1] for array in dumped(model_path, tmp_path / "in.txt", tmp_path / "f.h5")] == [2, 1]
    with FeatureFile(tmp_path / "f.h5") as file:
        assert file.find(["x" * 1_000_000]) == 1
