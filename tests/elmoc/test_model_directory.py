"""Model directories: read back as they were written, and damaged ones refused in words."""

import json
import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmoc import model as model_file
from elmoc import model_directory
from elmoc.errors import InputError
from elmoc.model import ElmoC
from elmoc.model_directory import read_model_directory, write_model_directory
from elmoc.word_vectors.sources import TextVectors
from elmoc.word_vectors.transform import VectorTransform
from tests.tiny import forget_checksums, tiny_model

SENTENCES = [["The", "cat", "sat", "."], ["unheard-of"]]


def old_model(path: Path) -> Path:
    """A model directory made one from before there were checksums."""
    forget_checksums(path / "config.json")
    return path


def edit_config(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    config = json.loads((path / "config.json").read_text())
    change(config)
    (path / "config.json").write_text(json.dumps(config))


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
    for written, back in (
        (model.encoder.weights(), read.encoder.weights()),
        (model.output_layer.weights, read.output_layer.weights),
    ):
        assert sorted(written) == sorted(back)
        assert all(torch.equal(written[name], back[name]) for name in written)
    assert read.encoder.config == model.encoder.config
    assert read.encoder.directions == ("forward", "backward")
    assert (read.word_vectors, read.training) == (model.word_vectors, model.training)
    assert read.output_layer.config == model.output_layer.config
    for name in ("boundary", "mean", "matrix"):
        np.testing.assert_array_equal(getattr(read.transform, name), getattr(model.transform, name))
    assert read.output_layer.transform is not None
    assert read.output_layer.transform.same_as(model.transform)
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == [
        "README.md",
        "config.json",
        "heads.safetensors",
        "model.safetensors",
    ]
    assert [file.name for file in tmp_path.iterdir()] == ["model"], "nothing is left beside it"


def test_a_newer_model_replaces_an_older_one_whole(model_path: Path) -> None:
    (model_path / "subwords.safetensors").write_text("")
    write_model_directory(model_path, tiny_model(directions=("backward",)))
    assert not (model_path / "subwords.safetensors").exists()
    assert read_model_directory(model_path).encoder.directions == ("backward",)


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
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_a_truncated_file_is_named(model_path: Path, name: str, share: float) -> None:
    content = (model_path / name).read_bytes()
    (model_path / name).write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InputError, match=rf"{name} is truncated or changed .*copy or export the model again"):
        ElmoC.from_pretrained(model_path)
    with pytest.raises(InputError, match=rf"{name} is truncated or damaged .*copy or export the model again"):
        ElmoC.from_pretrained(old_model(model_path))


@pytest.mark.parametrize("name", ["model.safetensors", "heads.safetensors"])
def test_damage_that_fits_is_seen_by_the_checksum(model_path: Path, name: str) -> None:
    content = bytearray((model_path / name).read_bytes())
    content[-2] ^= 1  # another number
    (model_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name} is damaged .*copy or export the model again"):
        ElmoC.from_pretrained(model_path)
    ElmoC.from_pretrained(old_model(model_path))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "heads.safetensors"])
@pytest.mark.parametrize("what", ["directory", "FIFO"])
def test_what_is_no_file_is_refused_unopened(model_path: Path, name: str, what: str) -> None:
    (model_path / name).unlink()
    if what == "FIFO":
        os.mkfifo(model_path / name)
    else:
        (model_path / name).mkdir()
    with pytest.raises(InputError, match=rf"{name} is {'a directory' if what == 'directory' else 'not an ordinary'}"):
        ElmoC.from_pretrained(model_path)


@pytest.mark.parametrize("name", ["model.safetensors", "heads.safetensors"])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_not_finite_are_refused(model_path: Path, name: str, number: float) -> None:
    tensors = load_file(model_path / name)
    first = sorted(tensors)[0]
    tensors[first].view(-1)[-1] = number
    save_file(tensors, model_path / name)
    with pytest.raises(InputError, match=rf"{name}: {first} has a number that is not finite: copy or export"):
        ElmoC.from_pretrained(old_model(model_path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets.boundary": None}, "lacks tensors: boundary"),
        ({"targets.mean": torch.zeros(5)}, r"mean has the shape \[5\], where \[6\] is expected"),
        ({"targets.matrix": torch.zeros(6, 6, dtype=torch.float64)}, "matrix has the type torch.float64"),
        ({"targets.boundary": torch.zeros(6)}, r"boundary has the shape \[6\]"),
    ],
)
def test_a_transform_of_targets_that_is_damaged_is_refused(
    tmp_path: Path, change: dict[str, torch.Tensor | None], message: str
) -> None:
    model = tiny_model()
    whole = VectorTransform(model.transform.boundary, np.zeros(6, np.float32), np.eye(6, dtype=np.float32))
    model.output_layer = replace(model.output_layer, transform=whole)
    write_model_directory(tmp_path / "model", model)
    heads = tmp_path / "model/heads.safetensors"
    tensors = load_file(heads) | change
    save_file({name: each for name, each in tensors.items() if each is not None}, heads)
    with pytest.raises(InputError, match=rf"heads.safetensors: the transform of the targets is damaged \({message}"):
        read_model_directory(old_model(tmp_path / "model"))


@pytest.mark.parametrize("name", ["mean", "matrix"])
def test_a_transform_that_is_not_whole_is_refused(tmp_path: Path, name: str) -> None:
    model = tiny_model()
    arrays = {"mean": np.ones(6, dtype=np.float32), "matrix": np.eye(6, dtype=np.float32)}
    model.word_vectors = replace(model.word_vectors, post_processing="whiten")
    for change, message in (
        ({name: None}, rf"lacks tensors: recipe\.{name}"),
        ({name: np.ones((2, 3), dtype=np.float32)}, rf"recipe\.{name} has the shape \[2, 3\], where \[6"),
        ({name: arrays[name].astype(np.float64)}, rf"recipe\.{name} has the type torch\.float64, where torch\.float32"),
    ):
        model.transform = VectorTransform(boundary=model.transform.boundary, **(arrays | change))
        write_model_directory(tmp_path / "model", model)
        with pytest.raises(InputError, match=rf"does not fit the sizes in config\.json \({message}.*export the model"):
            read_model_directory(tmp_path / "model")
    model.transform = VectorTransform(boundary=model.transform.boundary, **arrays)
    write_model_directory(tmp_path / "model", model)
    edit_config(tmp_path / "model", lambda config: config["word_vectors"].update(post_processing="none"))
    with pytest.raises(InputError, match=r"has unknown tensors: recipe\.matrix, recipe\.mean"):
        read_model_directory(tmp_path / "model")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.bool])
def test_tensors_of_another_type_are_refused(model_path: Path, dtype: torch.dtype) -> None:
    tensors = load_file(model_path / "model.safetensors")
    tensors["forward_lm.input_norm.weight"] = tensors["forward_lm.input_norm.weight"].to(dtype)
    save_file(tensors, model_path / "model.safetensors")
    with pytest.raises(InputError, match=rf"input_norm\.weight has the type {dtype}, where torch\.float32 is expected"):
        ElmoC.from_pretrained(old_model(model_path))


@pytest.mark.parametrize("offsets", [[0, 1 << 60], [1 << 60, (1 << 60) + 20], [-4, 16], [20, 0], [0, 4], "x"], ids=str)
def test_a_header_of_wrong_places_is_one_sentence(model_path: Path, offsets: object) -> None:
    path = model_path / "model.safetensors"
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    header["forward_lm.input_norm.weight"]["data_offsets"] = offsets
    changed = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(changed)) + changed + content[8 + size :])
    with pytest.raises(InputError, match=r"model\.safetensors is truncated or damaged .*export the model again"):
        ElmoC.from_pretrained(old_model(model_path))


def test_files_get_the_permissions_of_the_umask(model_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_model_directory(model_path, tiny_model())
    finally:
        os.umask(before)
    assert {file.name: file.stat().st_mode & 0o777 for file in model_path.iterdir()} == dict.fromkeys(
        ("README.md", "config.json", "heads.safetensors", "model.safetensors"), 0o644
    )


def test_the_readme_can_be_read(model_path: Path) -> None:
    model = tiny_model()
    model.training = {"corpus": "café", "held_out": {f"metric_{number}": 0.5 for number in range(30)}}
    write_model_directory(model_path, model)
    text = (model_path / "README.md").read_text(encoding="utf-8")
    assert '      "corpus": "café",' in text
    assert max(len(line) for line in text.splitlines()[-34:]) < 80


def test_features_never_need_the_heads(model_path: Path) -> None:
    (model_path / "heads.safetensors").unlink()
    model = read_model_directory(model_path)
    assert model.output_layer.weights is None
    for name, tensor in model.encoder.state_dict().items():
        assert torch.equal(tensor, tiny_model().encoder.state_dict()[name])


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(model_path: Path, name: str) -> None:
    (model_path / name).unlink()
    with pytest.raises(InputError, match=name):
        ElmoC.from_pretrained(model_path)


def test_what_is_no_model_directory(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match=r"is not a model directory .*nor a run directory"):
            ElmoC.from_pretrained(path)


def test_tensors_of_another_size_are_refused(model_path: Path) -> None:
    tensors = load_file(model_path / "model.safetensors")
    tensors["forward_lm.input_norm.weight"] = torch.ones(4)
    save_file(tensors, model_path / "model.safetensors")
    with pytest.raises(
        InputError,
        match=r"does not fit the sizes in config\.json "
        r"\(forward_lm\.input_norm\.weight has the shape \[4\], where \[5\] is expected",
    ):
        ElmoC.from_pretrained(old_model(model_path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda config: config.update(version=4), "has version 4 .*this elmoc reads versions 1 to 3"),
        (lambda config: config.update(format="elmoc-corpus"), "is not of the format elmoc-model"),
        (
            lambda config: config["encoder"].update(zoneout=0.1, attention=True),
            r"unknown key encoder\.zoneout \(known: encoder\.projection_size, ",
        ),
        (lambda config: config["encoder"].update(layers="2"), r"encoder\.layers must be of type int, not '2'"),
        (lambda config: config["encoder"].update(layers=2.0), r"encoder\.layers must be of type int, not 2\.0"),
        (lambda config: config["encoder"].update(layers=True), r"encoder\.layers must be of type int, not True"),
        (
            lambda config: config["encoder"].update(layers=0),
            r"encoder\.layers must be at least 1 and at most 1000, not 0",
        ),
        (lambda config: config["encoder"].update(layers=10**9), r"encoder\.layers must be at least 1 and at most 1000"),
        (
            lambda config: config["encoder"].update(cell_size=10**12),
            r"encoder\.cell_size must be at least 1 and at most",
        ),
        (lambda config: config["encoder"].update(cell_size=1 << 20), r"does not fit the sizes in config\.json"),
        (
            lambda config: config["encoder"].update(projection_size=10**30),
            r"encoder\.projection_size must be ",
        ),
        (lambda config: config["encoder"].update(word_vector_size=7), r"encoder\.word_vector_size must be that of the"),
        (
            lambda config: config["encoder"].update(kind="mamba"),
            r"unknown encoder\.kind 'mamba' \(known: lstm, plain_lstm, transformer\)",
        ),
        (lambda config: config["encoder"].update(layers=3), r"does not fit the sizes in config\.json"),
        (lambda config: config.update(directions=["sideways"]), r"directions must be forward, backward or both, not"),
        (lambda config: config.update(directions=[]), r"directions must be forward, backward or both, not \[\]"),
        (lambda config: config.update(directions=["forward"] * 2), r"directions must be forward, backward or both"),
        (lambda config: config.pop("word_vectors"), "the field word_vectors is missing"),
        (lambda config: config.pop("training"), "the field training is missing"),
        (lambda config: config.pop("output_layer"), "the field output_layer is missing"),
        (
            lambda config: config.update(output_layer="continuous"),
            "output_layer must be of type object, not 'continuous'",
        ),
        (lambda config: config.update(encoder="lstm"), "encoder must be of type object, not 'lstm'"),
        (lambda config: config["encoder"].update(kind=["lstm"]), "unknown encoder"),
        (lambda config: config.update(dropout=0.1), "unknown key dropout"),
        (lambda config: config["word_vectors"].update(size=-6), r"word_vectors\.size must be at least 1"),
        (lambda config: config["word_vectors"].update(post_processing="bleach"), "unknown transform 'bleach'"),
        (lambda config: config["word_vectors"].update(origin="a\0b"), r"word_vectors\.origin holds a NUL character"),
        (
            lambda config: config["checksums"].update({"model.safetensors": 3}),
            r"checksums\[\.\.\.\] must be of type object, not int",
        ),
        (
            lambda config: config.update(version=1, targets={"origin": "random:3:6"}),
            r"the field targets\.fingerprint is missing",
        ),
        (lambda config: config.update(version=1, targets=3), "targets must be of type object, not 3"),
    ],
)
def test_a_config_that_cannot_be_read_says_why(
    model_path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    edit_config(model_path, change)
    with pytest.raises(InputError, match=rf"{model_path}.*{message}.*: .*(copy or )?export the model again"):
        ElmoC.from_pretrained(model_path)


def test_the_second_version_still_loads(model_path: Path) -> None:
    """Its encoder does not say what its input layer is: a projection."""
    expected = read_model_directory(model_path).encoder.config
    edit_config(model_path, lambda config: config["encoder"].pop("input_layer"))
    edit_config(model_path, lambda config: config.update(version=2))
    assert read_model_directory(model_path).encoder.config == expected


def test_the_first_version_still_loads(model_path: Path) -> None:
    """Its encoder has no kind, its output layers are `targets`, and its weights have the names they have now."""

    def first_version(config: dict[str, Any]) -> None:
        config["version"] = 1
        del config["encoder"]["kind"], config["encoder"]["input_layer"]
        config["targets"] = config.pop("output_layer")
        del config["targets"]["kind"]

    expected, now = ElmoC.from_pretrained(model_path), read_model_directory(model_path)
    edit_config(model_path, first_version)
    old = read_model_directory(model_path)
    assert old.output_layer.is_like(now.output_layer)
    assert old.encoder.config == now.encoder.config
    model = ElmoC.from_pretrained(model_path)
    assert model.fingerprint == expected.fingerprint
    for one, other in zip(model.embed_batch(SENTENCES), expected.embed_batch(SENTENCES), strict=True):
        assert torch.equal(one, other)


def test_the_names_of_weights_in_files_are_fixed(model_path: Path) -> None:
    layer = ("input_weight", "hidden_weight", "bias", "projection_weight", "norm.weight", "norm.bias")
    one = [f"input_{part}.{name}" for part in ("projection", "norm") for name in ("weight", "bias")]
    one += [f"layers.{index}.{name}" for index in range(2) for name in layer]
    both = {f"{direction}_lm.{name}" for direction in ("forward", "backward") for name in one}
    assert set(load_file(model_path / "model.safetensors")) == {*both, "recipe.boundary"}


def test_a_truncated_config_is_named(model_path: Path) -> None:
    (model_path / "config.json").write_text((model_path / "config.json").read_text()[:100])
    with pytest.raises(InputError, match=r"config\.json is not valid JSON"):
        ElmoC.from_pretrained(model_path)


def test_a_run_directory_is_accepted(tmp_path: Path, model_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}")
    with pytest.raises(InputError, match=r"not a model directory|is not of the format"):
        ElmoC.from_pretrained(tmp_path / "run")  # nothing exported yet
    shutil.copytree(model_path, tmp_path / "run" / "model")
    assert ElmoC.from_pretrained(tmp_path / "run").fingerprint == ElmoC.from_pretrained(model_path).fingerprint


def test_a_directory_of_something_else_is_not_replaced(model_path: Path, tmp_path: Path) -> None:
    elmo, thesis, run = ElmoC.from_pretrained(model_path), tmp_path / "thesis", tmp_path / "run"
    for folder, name in ((thesis, "thesis.tex"), (run, "config.json")):
        folder.mkdir()
        (folder / name).write_text("{}")
        with pytest.raises(InputError, match=f"{folder} is a directory, but not of a model, and is not replaced"):
            elmo.save_pretrained(folder)
        assert (folder / name).read_text() == "{}"
    with pytest.raises(InputError, match="/ is a directory, but not of a model"):
        elmo.save_pretrained("/")
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
    write_model_directory(path, tiny_model())
    assert (path / ".git/objects/ab").read_text() == "a commit"
    assert (path / "LICENSE").read_text() == "mine"
    assert not (path / text_vectors.name).exists(), "they are those of the model before"


def bundled_model(path: Path, words: str, *directions: str) -> None:
    """Write a model with its word vectors beside it, as a run does that has found a better one."""
    words_file = path.with_name("words.vec")
    words_file.write_text(words)
    write_model_directory(path, tiny_model(vectors=TextVectors(words_file), directions=directions), vectors=words_file)


@pytest.mark.parametrize(
    ("module", "name", "reads_first"),
    [
        (model_directory, "_read_config", True),
        (model_directory, "_read_tensors", True),
        (model_file, "open_model_vectors", False),
    ],
    ids=["before its weights are read", "before its heads are read", "before its word vectors are read"],
)
def test_a_model_that_is_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, reads_first: bool
) -> None:
    path, read, exports = tmp_path / "model", getattr(module, name), 1
    better = cycle([("2 3\ncat 1 0 2\nsat 3 1 0\n", "backward"), ("2 3\ncat 1 0 2\nsat 0 1 0\n", "forward")])

    def read_and_replaced(*arguments: Any) -> Any:
        nonlocal exports
        found = read(*arguments) if reads_first else None
        if exports:
            exports -= 1
            with monkeypatch.context() as patch:
                patch.setattr(module, name, read)
                bundled_model(path, *next(better))
        return found if reads_first else read(*arguments)

    bundled_model(path, "2 3\ncat 1 0 2\nsat 0.5 1 0\n", "forward", "backward")
    with monkeypatch.context() as patch:
        patch.setattr(module, name, read_and_replaced)
        elmo = ElmoC.from_pretrained(path)
        assert elmo.encoder.directions == ("backward",)
        assert elmo.word_vectors.lookup(["sat"]).tolist() == [[3, 1, 0]]
        exports = 100
        with pytest.raises(InputError):
            ElmoC.from_pretrained(path)
    assert exports > 50, "not for ever"


def test_a_damaged_model_is_read_once(model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (model_path / "model.safetensors").write_bytes(b"x")
    read, calls = model_directory._read_config, []
    monkeypatch.setattr(model_directory, "_read_config", lambda path: calls.append(path) or read(path))
    with pytest.raises(InputError, match=r"model\.safetensors is truncated or changed"):
        ElmoC.from_pretrained(model_path)
    assert len(calls) == 1
