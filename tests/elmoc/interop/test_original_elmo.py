"""Original ELMo: imported models equal the reference activations, and export gives what was imported back."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from elmoc.__main__ import main
from elmoc.errors import InputError
from elmoc.interop.original_elmo import export_original_elmo, read_original_elmo
from elmoc.model_directory import read_model_directory, write_model_directory
from elmoc.word_vectors.character_cnn import CharacterCnnVectors
from elmoc.word_vectors.opening import open_word_vectors
from tests.elmoc.interop.conftest import DATA, Files
from tests.elmoc.interop.references import carried_states, layer_states, read_weights
from tests.tiny import tiny_model

from elmoc import ElmoC

SENTENCES = [["The", "bank", "was", "steep"], [], ["Zürich", "日本語", "<S>", "a" * 40, "é" * 11], ["x"]]


def load(options: Path, weights: Path, folder: Path) -> ElmoC:
    """An imported model."""
    write_model_directory(folder, read_original_elmo(options, weights))
    return ElmoC.from_pretrained(folder, precision="float32")


def assert_same(path: Path, other: Path) -> None:
    """Two files have the same tensors; biases, to which 1 is added when they are read, are the same up to rounding."""
    ours, theirs = read_weights(path), read_weights(other)
    assert ours.keys() == theirs.keys()
    for name, content in ours.items():
        rounding = 1e-6 if name.endswith("/B") else 0
        np.testing.assert_allclose(content, theirs[name], rtol=0, atol=rounding, strict=True)


def without_nothing(options: dict[str, Any]) -> dict[str, Any]:
    """Options without what is null, 0 or false, which says as much as leaving it out."""
    return {section: {name: each for name, each in values.items() if each} for section, values in options.items()}


def test_the_activations_are_those_of_the_original_tools(reference: Path, tmp_path: Path) -> None:
    model = load(reference / "options.json", reference / "lm_weights.hdf5", tmp_path / "model")
    sentences, *_ = json.loads((reference / "sentences.json").read_text(encoding="utf-8"))
    states = carried_states(model, [sentence.split() for sentence in sentences])
    with h5py.File(reference / "lm_embeddings_0.hdf5") as file:
        assert len(file) == len(states) == 10
        for index, state in enumerate(states):
            expected = np.concatenate(file[str(index)][()], axis=-1)  # [directions, n, P] → [n, 2P]
            np.testing.assert_allclose(state[-1].numpy(), expected, atol=1e-5, rtol=0)


VARIANTS: dict[str, dict[str, Any]] = {
    "skip connections": {"lstm": {"use_skip_connections": True, "n_layers": 3}},
    "no clips": {"lstm": {"cell_clip": None, "proj_clip": 0}},
    "tanh": {"char_cnn": {"activation": "tanh", "n_characters": 261}},
    "no highways": {"char_cnn": {"n_highway": None}},
    "no projection": {"char_cnn": {"filters": [[1, 2], [2, 3]]}, "projection": False},
    "filters as wide as words": {"char_cnn": {"filters": [[12, 2], [5, 2]], "n_highway": 3}},
    "words of one character": {"char_cnn": {"max_characters_per_token": 3, "filters": [[2, 4]]}},
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_every_variant_is_that_of_the_plain_network_and_comes_back(
    small: Callable[..., Files], tmp_path: Path, changes: dict[str, Any]
) -> None:
    options_path, weights_path = small(**changes)
    model = load(options_path, weights_path, tmp_path / "model")
    weights = {name: each.astype(np.float64) for name, each in read_weights(weights_path).items()}
    options = json.loads(options_path.read_text())
    for words, states in zip(SENTENCES, model.embed_batch(SENTENCES), strict=True):
        np.testing.assert_allclose(states.numpy(), layer_states(words, weights, options, {}), atol=1e-5, rtol=0)
    export_original_elmo(tmp_path / "model", tmp_path / "o.json", tmp_path / "w.hdf5")
    assert_same(tmp_path / "w.hdf5", weights_path)
    again = json.loads((tmp_path / "o.json").read_text())
    options["char_cnn"]["n_characters"] = 262
    assert without_nothing(again) == without_nothing(options)


def test_export_gives_the_references_back(reference: Path, tmp_path: Path) -> None:
    load(reference / "options.json", reference / "lm_weights.hdf5", tmp_path / "model")
    arguments = [str(tmp_path / name) for name in ("model", "options.json", "weights.hdf5")]
    assert main(["export-elmo", *arguments]) == 0
    assert_same(tmp_path / "weights.hdf5", reference / "lm_weights.hdf5")
    content = json.loads((tmp_path / "options.json").read_text())
    assert content == json.loads((reference / "options.json").read_text())


def test_weights_that_were_changed_are_exported(small: Callable[..., Files], tmp_path: Path) -> None:
    options, weights = small()
    write_model_directory(tmp_path / "model", read_original_elmo(options, weights))
    model = read_model_directory(tmp_path / "model")
    with torch.no_grad():
        layer = model.encoder.direction("backward").encoder.layers[1]
        layer.bias[7] += 0.5
        layer.input_weight.mul_(1.5)
    write_model_directory(tmp_path / "changed", model)
    export_original_elmo(tmp_path / "changed", tmp_path / "o.json", tmp_path / "w.hdf5")
    before, after = read_weights(weights), read_weights(tmp_path / "w.hdf5")
    changed = {name for name, value in after.items() if not np.array_equal(value, before[name])}
    place = "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell"
    assert {name for name in changed if not name.endswith("/B")} == {f"{place}/W_0"}
    again = load(tmp_path / "o.json", tmp_path / "w.hdf5", tmp_path / "again")
    torch.testing.assert_close(again.encoder.weights(), model.encoder.weights())
    differing = np.flatnonzero(abs(before[f"{place}/B"] - after[f"{place}/B"]) > 1e-6)
    assert differing.tolist() == [13], "the second forget gate, behind those of i and g"


def test_a_projection_that_bilm_tf_leaves_out_is_not_exported(small: Callable[..., Files], tmp_path: Path) -> None:
    load(*small(char_cnn={"filters": [[1, 2], [2, 3]]}), tmp_path / "model")
    with pytest.raises(InputError, match="projects 5 filters to as many numbers"):
        export_original_elmo(tmp_path / "model", tmp_path / "o.json", tmp_path / "w.hdf5")


@pytest.mark.parametrize("prefix", ["", "elmo_2x4096_512_2048cnn_2xhighway_"])
def test_the_directory_of_both_files_is_imported(small: Callable[..., Files], tmp_path: Path, prefix: str) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    files = small()
    for file, name in zip(files, ("options.json", "weights.hdf5"), strict=True):
        shutil.copy(file, folder / f"{prefix}{name}")
    for sources, model in ((files, "of the files"), ((folder,), "model")):
        assert main(["import-elmo", *map(str, sources), str(tmp_path / model)]) == 0
    one, other = (ElmoC.from_pretrained(tmp_path / model, precision="float32") for model in ("of the files", "model"))
    assert one.identity == other.identity
    shutil.copy(folder / f"{prefix}options.json", folder / "other_options.json")
    assert main(["import-elmo", str(folder), str(tmp_path / "other")]) == 1


def replace(file: h5py.File, name: str, value: np.ndarray) -> None:
    del file[name]
    file[name] = value


BAD_WEIGHTS: dict[str, Callable[[h5py.File], object]] = {
    "missing": lambda f: f.pop("RNN_1/RNN/MultiRNNCell/Cell1"),
    "unknown": lambda f: f.create_dataset("softmax/W", data=np.zeros(3)),
    "shape": lambda f: replace(f, "char_embed", np.zeros((262, 3), np.float32)),
    "type": lambda f: replace(f, "CNN/b_cnn_1", np.zeros(4)),
    "not finite": lambda f: replace(f, "CNN/b_cnn_1", np.full(4, np.nan, np.float32)),
    "external link": lambda f: (f.pop("CNN"), f.__setitem__("CNN", h5py.ExternalLink("other.h5", "/CNN"))),
}


@pytest.mark.parametrize("change", BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_weights_that_cannot_be_used(small: Callable[..., Files], change: Callable[[h5py.File], object]) -> None:
    options, weights = small()
    with h5py.File(weights, "r+") as file:
        change(file)
    with pytest.raises(InputError, match=str(weights)):
        read_original_elmo(options, weights)


BAD_OPTIONS: dict[str, dict[str, Any]] = {
    "width": {"lstm": {"projection_dim": 4}},
    "layers": {"lstm": {"n_layers": 3}},
    "few characters": {"char_cnn": {"max_characters_per_token": 2}},
    "activation": {"char_cnn": {"activation": "gelu"}},
    "unknown": {"lstm": {"peepholes": True}},
    "ids of characters": {"char_cnn": {"n_characters": 600}},
    "projection before the highways": {"char_cnn": {"projection_after_highway": False}},
    "size": {"lstm": {"dim": "6"}},
    "no switch": {"lstm": {"use_skip_connections": "false"}},
}


@pytest.mark.parametrize("changes", BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_options_that_do_not_fit(small: Callable[..., Files], changes: dict[str, dict[str, Any]]) -> None:
    options, weights = small()
    content = json.loads(options.read_text())
    for section, values in changes.items():
        content[section].update(values)
    options.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"options\.json|weights\.hdf5"):
        read_original_elmo(options, weights)


def test_options_of_a_training_run_are_read(small: Callable[..., Files], tmp_path: Path) -> None:
    options, weights = small()
    expected = load(options, weights, tmp_path / "expected").embed(SENTENCES[2])
    content = json.loads(options.read_text())
    content |= {"bidirectional": True, "dropout": 0.2, "n_train_tokens": 10**9, "unroll_steps": 35, "n_epochs": 3}
    content["char_cnn"] |= {"n_characters": 261, "projection_after_highway": True}
    content["lstm"] |= {"dropout": 0.5, "use_peepholes": False}
    options.write_text(json.dumps(content))
    assert torch.equal(load(options, weights, tmp_path / "model").embed(SENTENCES[2]), expected)
    options.write_text(json.dumps(content | {"bidirectional": False}))
    with pytest.raises(InputError, match="bidirectional"):
        read_original_elmo(options, weights)


def test_other_models_are_not_exported(model_path: Path, tmp_path: Path) -> None:
    imported = tmp_path / "imported"
    load(DATA / "allennlp/options.json", DATA / "allennlp/lm_weights.hdf5", imported)
    files = [str(tmp_path / name) for name in ("options.json", "weights.hdf5")]
    other = tiny_model(vectors=open_word_vectors(imported))
    other.stored_vectors = imported / CharacterCnnVectors.file_name
    write_model_directory(tmp_path / "norm", other)
    for model in (model_path, tmp_path / "norm"):
        assert main(["export-elmo", str(model), *files]) == 1
    assert not list(tmp_path.glob("*.json"))
    (tmp_path / "weights.hdf5").write_text("mine")
    assert main(["export-elmo", str(imported), *files]) == 1
    assert (tmp_path / "weights.hdf5").read_text() == "mine"
    assert not (tmp_path / "options.json").exists()
