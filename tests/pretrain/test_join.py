"""Joining: two models of one direction each become one only when they belong together."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.model_directory import ModelDirectory, write_model_directory
from pretrain.join import main
from tests.tiny import tiny_model

from elmoc import ElmoC
from elmoc.encoders import DIRECTIONS

Fails = Callable[[int], str]
Change = Callable[[ModelDirectory], object]


def write_halves(folder: Path, change: Change = lambda model: None) -> list[str]:
    """A forward model and a backward one, `change` done to the second; their paths."""
    for direction in DIRECTIONS:
        model = tiny_model(directions=(direction,))
        if direction == "backward":
            change(model)
        write_model_directory(folder / direction, model)
    return [str(folder / direction) for direction in DIRECTIONS]


def other_sizes(model: ModelDirectory) -> None:
    config = model.encoder.config
    config = replace(config, sizes=replace(config.sizes, cell_size=8))
    model.encoder = BidirectionalEncoder(config, directions=("backward",))


def other_vectors(model: ModelDirectory) -> None:
    model.word_vectors = replace(model.word_vectors, fingerprint="random:4:6")


def test_the_joined_model_is_both(tmp_path: Path) -> None:
    halves = write_halves(tmp_path)
    assert main([*halves, str(tmp_path / "joined")]) == 0
    sentences = [["The", "cat", "sat", "."], ["a"]]
    forward, backward, joined = (
        ElmoC.from_pretrained(path).embed_batch(sentences) for path in (*halves, str(tmp_path / "joined"))
    )
    for one, two, both in zip(forward, backward, joined, strict=True):
        torch.testing.assert_close(both, torch.cat([one, two], dim=-1))


@pytest.mark.parametrize(
    ("change", "what"),
    [(other_sizes, "the encoder's sizes"), (other_vectors, "the word vectors")],
    ids=["sizes", "vectors"],
)
def test_halves_that_do_not_belong_together(tmp_path: Path, error_line: Fails, change: Change, what: str) -> None:
    error = error_line(main([*write_halves(tmp_path, change), str(tmp_path / "joined")]))
    assert what in error
    assert not (tmp_path / "joined").exists()
