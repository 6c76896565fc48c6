"""ELMoForManyLangs: imported models give what the package gave, and files that cannot be used are one sentence."""

import json
import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from elmoc.__main__ import main
from elmoc.errors import InputError
from elmoc.interop.many_langs import read_many_langs
from elmoc.model_directory import write_model_directory
from tests.elmoc.interop.conftest import DATA
from tests.elmoc.interop.references import carried_states
from torch import Tensor

from elmoc import ElmoC
from elmoc.interop import many_langs

FOLDER = DATA / "many_langs"
MODELS = ("words_and_characters", "characters", "words")
SENTENCES = [line.split(" ") for line in (FOLDER / "unseen.txt").read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of a model of the package, to be damaged."""
    return Path(shutil.copytree(FOLDER / "words_and_characters", tmp_path / "theirs"))


def imported(source: Path, folder: Path) -> ElmoC:
    write_model_directory(folder, read_many_langs(source))
    return ElmoC.from_pretrained(folder, precision="float32")


@pytest.mark.parametrize("name", MODELS)
def test_the_layers_are_those_of_the_package(name: str, tmp_path: Path) -> None:
    """Layer by layer, each sentence by itself, all in a batch, and with the state carried from one to the next."""
    model = imported(FOLDER / name, tmp_path / "model")
    expected = np.load(FOLDER / name / "expected.npz")
    carried = carried_states(model, SENTENCES)
    for index, batched in enumerate(model.embed_batch(SENTENCES)):
        fresh = expected[f"fresh{index}"]
        assert batched.shape == fresh.shape == (model.layers, len(SENTENCES[index]), 12)
        for states, wanted in (
            (model.embed(SENTENCES[index]), fresh),
            (batched, fresh),
            (carried[index], expected[f"carried{index}"]),
        ):
            np.testing.assert_allclose(states.numpy(), wanted, atol=1e-5, rtol=0)


def test_import_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import-elmo", str(FOLDER / "characters"), str(tmp_path / "model")]) == 0
    assert "3 LSTM layers, projection 6, cell 10" in capsys.readouterr().out
    assert main(["export-elmo", str(tmp_path / "model"), str(tmp_path / "o.json"), str(tmp_path / "w.hdf5")]) == 1


def change(path: Path, edit: Callable[[dict[str, Tensor]], object]) -> None:
    tensors = torch.load(path, weights_only=True)
    edit(tensors)
    torch.save(tensors, path)


def test_files_of_old_releases_and_tensors_that_want_gradients_are_read(copied: Path, tmp_path: Path) -> None:
    expected = imported(copied, tmp_path / "new").embed(SENTENCES[0])
    for name in ("encoder.pkl", "token_embedder.pkl"):
        change(copied / name, lambda tensors: [tensor.requires_grad_() for tensor in tensors.values()])
        torch.save(torch.load(copied / name), copied / name, _use_new_zipfile_serialization=False)
    assert torch.equal(imported(copied, tmp_path / "old").embed(SENTENCES[0]), expected)


class Malicious:
    """Unpickled, it would print."""

    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("unpickled!",)


def test_nothing_but_tensors_is_unpickled(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copied / "encoder.pkl"
    tensors = torch.load(path, weights_only=True)
    for new in (True, False):
        torch.save(tensors | {"more": Malicious()}, path, _use_new_zipfile_serialization=new)
        with pytest.raises(InputError, match=r"encoder\.pkl"):
            read_many_langs(copied)
    path.write_bytes(pickle.dumps(Malicious(), protocol=2))
    with pytest.raises(InputError, match=r"encoder\.pkl"):
        read_many_langs(copied)
    assert "unpickled!" not in capsys.readouterr().out


def test_the_config_is_found_where_the_package_finds_it(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = json.loads((copied / "config.json").read_text())
    config = json.loads((copied / "tiny.json").read_text())

    def names(path: str) -> None:
        (copied / "config.json").write_text(json.dumps(record | {"config_path": path}))

    names("/home/somebody/configs/tiny.json")
    assert read_many_langs(copied).encoder.config.sizes.layers == 2
    (copied / "configs").mkdir()
    (copied / "tiny.json").rename(copied / "configs/tiny.json")
    assert read_many_langs(copied).encoder.config.sizes.layers == 2
    names("/home/somebody/cnn_50_100_512_4096_sample.json")
    with pytest.raises(InputError, match=r"token_embedder\.pkl"):
        read_many_langs(copied)
    monkeypatch.setattr(many_langs, "_PUBLISHED_CONFIG", config)
    assert read_many_langs(copied).encoder.config.sizes.layers == 2
    names("../elsewhere.json")
    (copied.parent / "elsewhere.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"elsewhere\.json"):
        read_many_langs(copied)


BAD_CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "LSTM words": ("token_embedder", {"name": "lstm"}),
    "width": ("encoder", {"projection_dim": 7}),
    "layers": ("encoder", {"n_layers": 3}),
    "no words": ("token_embedder", {"word_dim": 0}),
}


@pytest.mark.parametrize(("section", "values"), BAD_CONFIGS.values(), ids=BAD_CONFIGS)
def test_configs_that_cannot_be_used(copied: Path, section: str, values: dict[str, Any]) -> None:
    config = json.loads((copied / "tiny.json").read_text())
    config[section].update(values)
    (copied / "tiny.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=str(copied)):
        read_many_langs(copied)


BAD_TENSORS: dict[str, Callable[[dict[str, Tensor]], object]] = {
    "missing": lambda t: t.pop("backward_layer_1.state_projection.weight"),
    "shape": lambda t: t.update({"forward_layer_0.state_linearity.bias": torch.zeros(3)}),
    "not finite": lambda t: t["forward_layer_0.state_linearity.bias"].fill_(torch.inf),
    "no tensor": lambda t: t.update({"forward_layer_0.state_linearity.bias": 3}),
    "a dictionary": lambda t: t.update({"forward_layer_0.state_linearity.bias": dict(t)}),
    "meta": lambda t: t.update({"forward_layer_0.state_linearity.bias": torch.empty(40, device="meta")}),
    "nested": lambda t: t.update(
        {"forward_layer_0.state_linearity.bias": torch.nested.nested_tensor([torch.ones(40)])}
    ),
    "sparse": lambda t: t.update({"forward_layer_0.state_linearity.bias": torch.ones(40).to_sparse()}),
    "one number": lambda t: t.update({"forward_layer_0.state_linearity.bias": torch.ones(1).expand(40)}),
}


@pytest.mark.parametrize("edit", BAD_TENSORS.values(), ids=BAD_TENSORS)
def test_tensors_that_cannot_be_used(copied: Path, edit: Callable[[dict[str, Tensor]], object]) -> None:
    change(copied / "encoder.pkl", edit)
    with pytest.raises(InputError, match=r"encoder\.pkl"):
        read_many_langs(copied)


def test_a_character_of_white_space_stands_for_the_ideographic_space(copied: Path) -> None:
    path = copied / "char.dic"
    path.write_text(re.sub(r"(?m)^.\t3$", "\u3000\t3", path.read_text(encoding="utf-8")), encoding="utf-8")
    assert read_many_langs(copied).stored_vectors.lexicons["lexicon.characters"]["\u3000"] == 3


BAD_LEXICONS: dict[str, tuple[str, Callable[[list[str]], list[str]], str]] = {
    "another model's": ("char", lambda lines: [*lines, "鱼\t42"], "43 entries, with ids to 42, .* has 42 rows"),
    "another model's words": ("word", lambda lines: [*lines[:3], "fish\t900", *lines[4:]], "with ids to 900"),
    "negative": ("char", lambda lines: ["x\t-1", *lines[1:]], "it was cut, or is of another model"),
    "twice": ("word", lambda lines: [*lines[:-1], lines[0]], "44 entries, with ids to 42, .* 44 rows"),
    "one more": ("word", lambda lines: [*lines, "fish\t0"], "45 entries, with ids to 43"),
    "cut": ("char", lambda lines: lines[:30], "30 entries, .*their table in token_embedder.pkl has 42 rows"),
    "no number": ("char", lambda lines: [*lines[:-1], "x\ty"], "line 42 cannot be read"),
}


@pytest.mark.parametrize(("kind", "edit", "error"), BAD_LEXICONS.values(), ids=BAD_LEXICONS)
def test_lexicons_that_do_not_fit_the_tables(
    copied: Path, kind: str, edit: Callable[[list[str]], list[str]], error: str
) -> None:
    path = copied / f"{kind}.dic"
    lines = edit(path.read_text(encoding="utf-8").split("\n")[:-1])
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with pytest.raises(InputError, match=f"^{path}.*{error}"):
        read_many_langs(copied)
