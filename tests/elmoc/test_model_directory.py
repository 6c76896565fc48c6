"""Model directories: read back as they were written, and damaged ones refused in words."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from elmoc.__main__ import main
from elmoc.errors import InputError
from elmoc.model import ElmoC
from elmoc.model_directory import read_model_directory, write_model_directory
from elmoc.word_vectors.sources import TextVectors
from elmoc.word_vectors.transform import VectorTransform
from safetensors.torch import load_file, save_file
from tests.tiny import edit_json, forget_checksums, tiny_model

SENTENCES = [["The", "cat", "sat", "."], ["unheard-of"]]


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to every value of a record, and to the values in it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*place, key)
        yield from places(each, (*place, key))


@pytest.mark.parametrize("wrong", ["missing", None, "x", [1]], ids=str)
def test_a_config_with_anything_wrong_in_it_is_refused_or_read(tmp_path: Path, wrong: Any) -> None:
    path = tmp_path / "model"
    packed = {"parent": "p", "model": "m", "word_vectors": "v", "word_vectors_fingerprint": "f", "weights": "int8"}
    training = {"words": 9, "name": "x", "sources": ["a=b"], "tokens_by_source": {"a": 3}, "held_out": {"cosine": 0.3}}
    training |= {"started_from": {"words": 5, "corpus": "c"}, "packed": packed}
    write_model_directory(path, replace(tiny_model(), training=training))
    whole = json.loads((path / "config.json").read_text())
    refused: list[str] = []
    for place in places(whole):

        def damage(config: dict[str, Any], place: tuple[Any, ...] = place) -> None:
            for key in place[:-1]:
                config = config[key]
            config[place[-1]] = wrong
            if wrong == "missing":
                del config[place[-1]]

        (path / "config.json").write_text(json.dumps(whole))
        edit_json(path / "config.json", damage)
        try:
            model = ElmoC.from_pretrained(path)
            assert model.identity["packed_from"] if model.directory.packed_from else True
            assert repr(model)
            model.save_pretrained(tmp_path / "copy")
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > 20
    assert all(str(path) in line or "training record" in line for line in refused)


def test_everything_comes_back(tmp_path: Path) -> None:
    model = tiny_model()
    generator = np.random.default_rng(0)
    model.transform = VectorTransform(
        boundary=model.transform.boundary,
        mean=generator.standard_normal(6, dtype=np.float32),
        matrix=generator.standard_normal((6, 6), dtype=np.float32),
    )
    model.word_vectors = replace(model.word_vectors, post_processing="whiten")
    model.output_layer = replace(model.output_layer, transform=model.transform)
    model.training = {"corpus": "café", "updates": 7}
    write_model_directory(tmp_path / "model", model)
    read = read_model_directory(tmp_path / "model")
    torch.testing.assert_close(read.encoder.weights(), model.encoder.weights(), rtol=0, atol=0)
    torch.testing.assert_close(read.output_layer.weights, model.output_layer.weights, rtol=0, atol=0)
    assert read.encoder.config == model.encoder.config
    assert read.encoder.directions == ("forward", "backward")
    assert (read.word_vectors, read.training) == (model.word_vectors, model.training)
    assert read.output_layer.config == model.output_layer.config
    assert read.transform.same_as(model.transform)
    assert read.output_layer.transform is not None
    assert read.output_layer.transform.same_as(model.transform)
    names = " ".join(sorted(file.name for file in (tmp_path / "model").iterdir()))
    assert names == "README.md config.json config.json.xxh3 heads.safetensors model.safetensors"
    assert [file.name for file in tmp_path.iterdir()] == ["model"], "nothing is left beside it"


def test_one_direction_is_half_as_wide_and_equals_its_half(tmp_path: Path, model_path: Path) -> None:
    both = tiny_model()
    one = tiny_model(directions=("backward",))
    one.encoder.direction("backward").load_state_dict(both.encoder.direction("backward").state_dict())
    write_model_directory(tmp_path / "one", one)
    whole, half = ElmoC.from_pretrained(model_path), ElmoC.from_pretrained(tmp_path / "one")
    assert (whole.width, half.width, half.layers) == (10, 5, 3)
    for wide, narrow in zip(whole.embed_batch(SENTENCES), half.embed_batch(SENTENCES), strict=True):
        torch.testing.assert_close(wide[..., 5:], narrow)


@pytest.mark.parametrize("name", ["model.safetensors", "heads.safetensors"])
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(model_path: Path, name: str, number: float) -> None:
    tensors = load_file(model_path / name)
    first = sorted(tensors)[0]
    tensors[first].view(-1)[-1] = number
    save_file(tensors, model_path / name)
    forget_checksums(model_path / "config.json")
    with pytest.raises(InputError, match=rf"{name}: {first}"):
        ElmoC.from_pretrained(model_path).save_pretrained(model_path)


@pytest.mark.parametrize("name", ["model.safetensors", "heads.safetensors", "config.json"])
def test_a_pipe_or_a_device_is_no_file_of_a_model(
    model_path: Path, name: str, error_line: Callable[[int], str]
) -> None:
    (model_path / name).unlink()
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        make(model_path / name)
        for with_checksums in (True, False):
            with pytest.raises(InputError, match=rf"{name} is a pipe or a device, not a file"):
                read_model_directory(model_path, check_files=with_checksums)
        assert f"{name} is a pipe" in error_line(main(["check", str(model_path)]))
        (model_path / name).unlink()


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("recipe.matrix", torch.ones(2, 3)),
        ("recipe.other", torch.eye(6)),
        ("forward_lm.input_norm.weight", torch.ones(4)),
        ("forward_lm.input_norm.weight", torch.ones(5, dtype=torch.int32)),
    ],
)
def test_tensors_that_do_not_fit_are_named(tmp_path: Path, name: str, tensor: torch.Tensor) -> None:
    model = tiny_model()
    arrays = {"mean": np.ones(6, dtype=np.float32), "matrix": np.eye(6, dtype=np.float32)}
    model.word_vectors = replace(model.word_vectors, post_processing="whiten")
    model.transform = VectorTransform(boundary=model.transform.boundary, **arrays)
    write_model_directory(tmp_path / "model", model)
    tensors = load_file(tmp_path / "model/model.safetensors")
    save_file(tensors | {name: tensor}, tmp_path / "model/model.safetensors")
    forget_checksums(tmp_path / "model/config.json")
    with pytest.raises(InputError, match=rf"model\.safetensors.*{name}"):
        read_model_directory(tmp_path / "model")


def test_a_card_that_somebody_has_changed_stays(model_path: Path) -> None:
    card = model_path / "README.md"
    for updates in (7, 8):
        write_model_directory(model_path, replace(tiny_model(), training={"updates": updates}))
        assert f"| updates | {updates} |" in card.read_text(encoding="utf-8")
    card.write_text("mine", encoding="utf-8")
    for _ in range(2):
        write_model_directory(model_path, tiny_model())
        assert card.read_text(encoding="utf-8") == "mine"


def test_features_never_need_the_heads(model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heads = model_path / "heads.safetensors"
    content = heads.read_bytes()
    with open(heads, "r+b") as file:
        file.truncate(1 << 34)
    monkeypatch.chdir(model_path)
    model = ElmoC.from_pretrained(".")
    monkeypatch.chdir("/")
    heads.write_bytes(content)
    model.save_pretrained(model_path)
    assert heads.read_bytes() == content
    heads.unlink()
    model = read_model_directory(model_path)
    assert model.output_layer.weights is None
    torch.testing.assert_close(model.encoder.weights(), tiny_model().encoder.weights(), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda config: config.update(version=2), "version 2"),
        (lambda config: config.update(format="elmoc-corpus"), "format"),
        (lambda config: config["encoder"].update(zoneout=0.1, attention=True), r"encoder\.zoneout"),
        (lambda config: config["encoder"].update(cell_size=10**12), r"encoder\.cell_size"),
        (lambda config: config["encoder"].update(word_vector_size=7), r"encoder\.word_vector_size"),
        (lambda config: config["encoder"].update(kind="mamba"), r"encoder\.kind"),
        (lambda config: config["word_vectors"].update(size=-6), r"word_vectors\.size"),
        (lambda config: config["checksums"].update({"model.safetensors": 3}), "checksums"),
    ],
)
def test_a_config_that_cannot_be_read_says_why(
    model_path: Path, change: Callable[[dict[str, Any]], object], key: str
) -> None:
    edit_json(model_path / "config.json", change)
    with pytest.raises(InputError, match=rf"{model_path}/config\.json.*{key}"):
        ElmoC.from_pretrained(model_path)


def test_a_run_directory_is_accepted(tmp_path: Path, model_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}")
    with pytest.raises(InputError):
        ElmoC.from_pretrained(tmp_path / "run")  # nothing exported yet
    shutil.copytree(model_path, tmp_path / "run" / "model")
    assert ElmoC.from_pretrained(tmp_path / "run").fingerprint == ElmoC.from_pretrained(model_path).fingerprint


def test_a_directory_of_something_else_is_not_replaced(model_path: Path, tmp_path: Path) -> None:
    elmo, thesis, run = ElmoC.from_pretrained(model_path), tmp_path / "thesis", tmp_path / "run"
    for folder, name in ((thesis, "thesis.tex"), (run, "config.json")):
        folder.mkdir()
        (folder / name).write_text("{}")
        with pytest.raises(InputError, match=str(folder)):
            elmo.save_pretrained(folder)
        assert (folder / name).read_text() == "{}"
    (tmp_path / "empty").mkdir()
    elmo.save_pretrained(tmp_path / "empty")
    assert (tmp_path / "empty/config.json").exists()


def test_what_is_no_part_of_the_model_stays(tmp_path: Path) -> None:
    path, text_vectors = tmp_path / "model", tmp_path / "vectors.txt"
    text_vectors.write_text("w1 1 2 3\nw2 4 5 6\n")
    vectors = TextVectors(text_vectors)
    write_model_directory(path, tiny_model(vectors=vectors), vectors=text_vectors)
    (path / ".git/objects").mkdir(parents=True)
    (path / ".git/objects/ab").write_text("a commit")
    (path / "LICENSE").write_text("mine")
    write_model_directory(path, tiny_model(vectors=vectors))
    there = {str(each.relative_to(path)) for each in path.rglob("*")}
    assert there > {".git/objects/ab", "LICENSE", text_vectors.name}
