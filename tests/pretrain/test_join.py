"""Joining: two models of one direction each become one only when they belong together."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmoc import ElmoC
from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.model_directory import ModelDirectory, write_model_directory
from elmoc.word_vectors.sources import RandomVectors
from pretrain.join import main
from tests.tiny import forget_checksums, tiny_model

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


def other_targets(model: ModelDirectory) -> None:
    config = model.output_layer.config | {"fingerprint": "random:4:6"}
    model.output_layer = replace(model.output_layer, config=config)


def other_transform(model: ModelDirectory) -> None:
    model.transform = replace(model.transform, boundary=model.transform.boundary + np.float32(1))


def test_the_joined_model_is_both(tmp_path: Path) -> None:
    halves = write_halves(tmp_path)
    assert main([*halves, str(tmp_path / "joined")]) == 0
    sentences = [["The", "cat", "sat", "."], ["a"]]
    forward, backward, joined = (
        ElmoC.from_pretrained(path).embed_batch(sentences) for path in (*halves, str(tmp_path / "joined"))
    )
    for one, two, both in zip(forward, backward, joined, strict=True):
        torch.testing.assert_close(both, torch.cat([one, two], dim=-1))


def test_either_half_of_a_whole_model_can_be_taken(tmp_path: Path, model_path: Path) -> None:
    write_halves(tmp_path)
    assert main([str(tmp_path / "forward"), str(model_path), str(tmp_path / "joined")]) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_sizes, "the encoder's sizes differ"),
        (other_vectors, "the word vectors differ"),
        (other_targets, "the output layers differ"),
        (other_transform, "the processing of the word vectors differ"),
    ],
    ids=["sizes", "vectors", "targets", "recipe"],
)
def test_halves_that_do_not_belong_together(
    tmp_path: Path, error_line: Callable[[int], str], change: Change, message: str
) -> None:
    error = error_line(main([*write_halves(tmp_path, change), str(tmp_path / "joined")]))
    assert "do not belong together" in error
    assert message in error
    assert not (tmp_path / "joined").exists()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["forward_lm.weight"], "backward: heads.safetensors does not fit that of"),
        (["forward_lm.bias", "forward_lm.weight", "zzz"], "forward: heads.safetensors does not fit the directions"),
        (["other"], "forward: heads.safetensors does not fit the directions"),
    ],
    ids=["one is missing", "one too many", "none of the direction"],
)
def test_output_layers_that_are_not_whole(
    tmp_path: Path, error_line: Callable[[int], str], names: list[str], message: str
) -> None:
    halves = write_halves(tmp_path)
    heads = tmp_path / "forward" / "heads.safetensors"
    weights = load_file(heads)
    save_file({name: weights.get(name, torch.ones(2)) for name in names}, heads)
    forget_checksums(tmp_path / "forward" / "config.json")
    assert message in error_line(main([*halves, str(tmp_path / "joined")]))
    assert not (tmp_path / "joined").exists()


def test_the_wrong_order_is_said(tmp_path: Path, error_line: Callable[[int], str]) -> None:
    halves = write_halves(tmp_path)
    error = error_line(main([*reversed(halves), str(tmp_path / "joined")]))
    assert "has no forward direction: give the forward run first, then the backward one" in error
    error = error_line(main([halves[0], halves[0], str(tmp_path / "joined")]))
    assert "has no backward direction" in error


def test_missing_runs_and_existing_output(tmp_path: Path, error_line: Callable[[int], str]) -> None:
    halves = write_halves(tmp_path)
    assert "is not a model directory" in error_line(main([halves[0], str(tmp_path / "none"), str(tmp_path / "joined")]))
    assert "exists already" in error_line(main([*halves, halves[0]]))


def test_vectors_of_another_file_with_the_same_content_fit(tmp_path: Path) -> None:
    def moved(model: ModelDirectory) -> None:
        model.word_vectors = replace(model.word_vectors, origin="somewhere/else.bin")

    assert RandomVectors(seed=3, size=6).fingerprint == tiny_model().word_vectors.fingerprint
    assert main([*write_halves(tmp_path, moved), str(tmp_path / "joined")]) == 0


def test_a_model_that_another_process_is_writing_is_left_alone(tmp_path: Path, error_line: Fails) -> None:
    halves = write_halves(tmp_path)
    held = "import sys; from elmoc.files.locks import locked\nwith locked(sys.argv[1]): print(flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", held, str(tmp_path / "joined")], stdin=pipe, stdout=pipe) as other:
        assert other.stdout is not None
        other.stdout.readline()
        error = error_line(main([*halves, str(tmp_path / "joined")]))
        other.communicate(b"\n")
    assert error == f"error: another process is writing {tmp_path / 'joined'}: wait for it, or stop it"
    assert not (tmp_path / "joined").exists()
