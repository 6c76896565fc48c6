"""Model directories: read back as they were written, and damaged ones refused in words."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmoc.errors import InputError
from elmoc.model import load_model
from elmoc.model_directory import read_model_directory, write_model_directory
from elmoc.word_vectors.sources import TextVectors
from elmoc.word_vectors.transform import VectorTransform
from tests.tiny import tiny_model

SENTENCES = [["The", "cat", "sat", "."], ["unheard-of"]]


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
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == [
        "README.md",
        "config.json",
        "heads.safetensors",
        "model.safetensors",
    ]
    assert [file.name for file in tmp_path.iterdir()] == ["model"], "nothing is left beside it"


def test_a_newer_model_replaces_an_older_one_whole(model_path: Path) -> None:
    (model_path / "stale").write_text("")
    write_model_directory(model_path, tiny_model(directions=("backward",)))
    assert not (model_path / "stale").exists()
    assert read_model_directory(model_path).encoder.directions == ("backward",)


def test_one_direction_is_half_as_wide_and_equals_its_half(tmp_path: Path, model_path: Path) -> None:
    both = tiny_model()
    one = tiny_model(directions=("backward",))
    one.encoder.direction("backward").load_state_dict(both.encoder.direction("backward").state_dict())
    write_model_directory(tmp_path / "one", one)
    whole, half = load_model(model_path), load_model(tmp_path / "one")
    assert (whole.width, half.width, half.layers) == (10, 5, 3)
    for wide, narrow in zip(whole.layer_states(SENTENCES), half.layer_states(SENTENCES), strict=True):
        torch.testing.assert_close(wide[..., 5:], narrow)


@pytest.mark.parametrize("name", ["model.safetensors", "heads.safetensors"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_a_truncated_file_is_named(model_path: Path, name: str, share: float) -> None:
    content = (model_path / name).read_bytes()
    (model_path / name).write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InputError, match=rf"{name} is truncated or damaged .*copy or export the model again"):
        load_model(model_path)


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
        load_model(model_path)


def test_what_is_no_model_directory(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match=r"is not a model directory .*nor a run directory"):
            load_model(path)


def test_tensors_of_another_size_are_refused(model_path: Path) -> None:
    tensors = load_file(model_path / "model.safetensors")
    tensors["forward_lm.input_norm.weight"] = torch.ones(4)
    save_file(tensors, model_path / "model.safetensors")
    with pytest.raises(
        InputError,
        match=r"does not fit the sizes in config\.json "
        r"\(forward_lm\.input_norm\.weight has the shape \[4\], where \[5\] is expected",
    ):
        load_model(model_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda config: config.update(version=3), "has version 3 .*this elmoc reads version 2"),
        (lambda config: config.update(format="elmoc-corpus"), "is not of the format elmoc-model"),
        (
            lambda config: config["encoder"].update(zoneout=0.1, attention=True),
            "unknown encoder settings: attention, z",
        ),
        (
            lambda config: config["encoder"].update(layers="2"),
            r"config\.json: encoder\.layers must be at least 1, not '2'",
        ),
        (lambda config: config["encoder"].update(kind="mamba"), "unknown encoder 'mamba' .known: lstm"),
        (lambda config: config["encoder"].update(layers=3), r"does not fit the sizes in config\.json"),
        (lambda config: config.update(directions=["sideways"]), "unknown directions"),
        (lambda config: config.update(directions=[]), "unknown directions"),
        (lambda config: config.pop("word_vectors"), "lacks or misspells a setting .*word_vectors"),
        (lambda config: config.pop("training"), "lacks or misspells a setting .*training"),
        (lambda config: config.pop("output_layer"), "lacks or misspells a setting .*output_layer"),
        (lambda config: config.update(output_layer="continuous"), "lacks or misspells a setting .*mapping"),
        (lambda config: config.update(encoder="lstm"), "lacks or misspells a setting .*mapping"),
        (lambda config: config["encoder"].update(kind=["lstm"]), "unknown encoder"),
        (
            lambda config: config.update(version=1, targets={"origin": "random:3:6"}),
            "lacks or misspells a setting .*fingerprint",
        ),
    ],
)
def test_a_config_that_cannot_be_read_says_why(
    model_path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    edit_config(model_path, change)
    with pytest.raises(InputError, match=message):
        load_model(model_path)


def test_the_first_version_still_loads(model_path: Path) -> None:
    """Its encoder has no kind, its output layers are `targets`, and its weights have the names they have now."""

    def first_version(config: dict[str, Any]) -> None:
        config["version"] = 1
        del config["encoder"]["kind"]
        config["targets"] = config.pop("output_layer")
        del config["targets"]["kind"]

    expected, now = load_model(model_path), read_model_directory(model_path)
    edit_config(model_path, first_version)
    old = read_model_directory(model_path)
    assert old.output_layer.is_like(now.output_layer)
    assert old.encoder.config == now.encoder.config
    model = load_model(model_path)
    assert model.fingerprint == expected.fingerprint
    for one, other in zip(model.layer_states(SENTENCES), expected.layer_states(SENTENCES), strict=True):
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
        load_model(model_path)


def test_a_run_directory_is_accepted(tmp_path: Path, model_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}")
    with pytest.raises(InputError, match=r"not a model directory|is not of the format"):
        load_model(tmp_path / "run")  # nothing exported yet
    shutil.copytree(model_path, tmp_path / "run" / "model")
    assert load_model(tmp_path / "run").fingerprint == load_model(model_path).fingerprint


def vec_model(folder: Path, name: str = "words.vec") -> Path:
    """A model that reads a text file of vectors, which is beside the model directory."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("2 3\ncat 1 0 2\nsat 0.5 1 0\n")
    write_model_directory(folder / "model", tiny_model(vectors=TextVectors(folder / name)))
    return folder / "model"


def test_word_vectors_are_found_where_they_were_moved_or_bundled(tmp_path: Path) -> None:
    model = vec_model(tmp_path / "here")
    expected = load_model(model).layer_states([["cat", "sat"]])[0]
    (tmp_path / "here" / "words.vec").rename(tmp_path / "moved.vec")
    with pytest.raises(InputError, match=r"words\.vec, which this model reads, are not there: .*--vectors"):
        load_model(model)
    torch.testing.assert_close(
        load_model(model, vectors=str(tmp_path / "moved.vec")).layer_states([["cat", "sat"]])[0], expected
    )
    shutil.copy(tmp_path / "moved.vec", model / "words.vec")
    torch.testing.assert_close(load_model(model).layer_states([["cat", "sat"]])[0], expected)


def test_other_word_vectors_are_refused(tmp_path: Path) -> None:
    model = vec_model(tmp_path)
    (tmp_path / "other.vec").write_text("2 3\ncat 1 0 2\nsat 0.5 1 1\n")
    with pytest.raises(InputError, match=r"other\.vec \(fingerprint \w+\) are not the word vectors of this model"):
        load_model(model, vectors=str(tmp_path / "other.vec"))
    (tmp_path / "wide.vec").write_text("2 4\ncat 1 0 2 3\nsat 0.5 1 1 4\n")
    with pytest.raises(InputError, match=r"wide\.vec has 4 dimensions, but the model reads 3"):
        load_model(model, vectors=str(tmp_path / "wide.vec"))
    with pytest.raises(InputError, match=r"none\.vec does not exist"):
        load_model(model, vectors=str(tmp_path / "none.vec"))
