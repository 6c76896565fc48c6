"""ELMoForManyLangs: imported models give what the package gave, and files that cannot be used are one sentence."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from elmoc import ElmoC
from elmoc.__main__ import main
from elmoc.errors import InputError
from elmoc.interop import many_langs
from elmoc.interop.many_langs import read_many_langs
from tests.elmoc.interop.conftest import DATA

FOLDER = DATA / "many_langs"
MODELS = ("words_and_characters", "characters", "words")
SENTENCES = [line.split(" ") for line in (FOLDER / "unseen.txt").read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of a model of the package, to be damaged."""
    return Path(shutil.copytree(FOLDER / "words_and_characters", tmp_path / "theirs"))


def imported(source: Path, folder: Path) -> ElmoC:
    read_many_langs(source).write(folder)
    return ElmoC.from_pretrained(folder)


@pytest.mark.parametrize("name", MODELS)
def test_the_layers_are_those_of_the_package(name: str, tmp_path: Path) -> None:
    """Layer by layer, each sentence by itself, all in a batch, and with the state carried from one to the next."""
    model = imported(FOLDER / name, tmp_path / "model")
    expected = np.load(FOLDER / name / "expected.npz")
    carried = model.embed_documents([SENTENCES])[0]
    for index, batched in enumerate(model.embed_batch(SENTENCES)):
        fresh = expected[f"fresh{index}"]
        assert batched.shape == fresh.shape == (model.layers, len(SENTENCES[index]), 12)
        for states, wanted in (
            (model.embed(SENTENCES[index]), fresh),
            (batched, fresh),
            (carried[index], expected[f"carried{index}"]),
        ):
            np.testing.assert_allclose(states.numpy(), wanted, atol=1e-5, rtol=0)
            # what the package calls output layer -1
            np.testing.assert_allclose(states.mean(dim=0).numpy(), np.average(wanted, axis=0), atol=1e-5, rtol=0)


def test_import_by_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], error_line: Callable[[int], str]
) -> None:
    assert main(["import-elmo", str(FOLDER / "characters"), str(tmp_path / "model")]) == 0
    assert "3 LSTM layers, projection 6, cell 10" in capsys.readouterr().out
    status = main(["export-elmo", str(tmp_path / "model"), str(tmp_path / "o.json"), str(tmp_path / "w.hdf5")])
    assert "as it spells words by a lexicon of characters, and not in bytes" in error_line(status)


def change(path: Path, edit: Callable[[dict[str, Tensor]], object]) -> None:
    tensors = torch.load(path, weights_only=True)
    edit(tensors)
    torch.save(tensors, path)


def test_files_of_old_releases_of_pytorch_are_read(copied: Path, tmp_path: Path) -> None:
    expected = imported(copied, tmp_path / "new").embed(SENTENCES[0])
    for name in ("encoder.pkl", "token_embedder.pkl"):
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
        with pytest.raises(InputError, match=r"encoder\.pkl is damaged, or holds more than tensors \(.*get the model"):
            read_many_langs(copied)
    path.write_bytes(pickle.dumps(Malicious(), protocol=2))
    with pytest.raises(InputError, match=r"encoder\.pkl is damaged, or holds more than tensors"):
        read_many_langs(copied)
    assert "unpickled!" not in capsys.readouterr().out


def test_the_config_is_found_where_the_package_finds_it(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = json.loads((copied / "config.json").read_text())
    config = json.loads((copied / "tiny.json").read_text())

    def names(path: str) -> None:
        (copied / "config.json").write_text(json.dumps(record | {"config_path": path}))

    names("/home/somebody/configs/tiny.json")
    assert read_many_langs(copied).sizes.layers == 2
    (copied / "configs").mkdir()
    (copied / "tiny.json").rename(copied / "configs/tiny.json")
    assert read_many_langs(copied).sizes.layers == 2
    names("/home/somebody/cnn_50_100_512_4096_sample.json")
    with pytest.raises(
        InputError, match=r"token_embedder\.pkl does not fit the config \(lacks tensors: convolutions\.3"
    ):
        read_many_langs(copied)
    monkeypatch.setattr(many_langs, "_PUBLISHED_CONFIG", config)
    assert read_many_langs(copied).sizes.layers == 2
    names("../elsewhere.json")
    (copied.parent / "elsewhere.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"lacks 'elsewhere\.json', the config .*: copy it there"):
        read_many_langs(copied)


def test_the_published_config_is_that_of_the_published_sizes() -> None:
    config = many_langs._PUBLISHED_CONFIG
    assert sum(number for _, number in config["token_embedder"]["filters"]) == 2048
    assert (config["encoder"]["dim"], config["encoder"]["projection_dim"]) == (4096, 512)


BAD_CONFIGS: dict[str, tuple[str, dict[str, Any], str]] = {
    "LSTM encoder": ("encoder", {"name": "lstm"}, r"its encoder is 'lstm', and only that of ELMo"),
    "LSTM words": ("token_embedder", {"name": "lstm"}, r"its token_embedder is 'lstm', and only cnn can be imported"),
    "width": ("encoder", {"projection_dim": 7}, r"token_embedder\.pkl does not fit the config \(projection"),
    "cell": ("encoder", {"dim": 11}, r"encoder\.pkl does not fit the config \(forward_layer_0\.input_linearity"),
    "layers": ("encoder", {"n_layers": 3}, r"encoder\.pkl does not fit the config \(lacks tensors: backward_layer_2"),
    "highways": ("token_embedder", {"n_highway": 1}, r"has unknown tensors: highways\._layers\.1\.bias"),
    "no words": ("token_embedder", {"word_dim": 0}, r"has unknown tensors: word_emb_layer"),
    "no character": ("token_embedder", {"max_characters_per_token": 2}, r"max_characters_per_token must be at least 3"),
    "activation": ("token_embedder", {"activation": "gelu"}, r"activation must be one of relu, tanh"),
    "type": ("token_embedder", {"char_dim": "4"}, r"token_embedder\.char_dim must be of type int, not '4'"),
    "clip": ("encoder", {"cell_clip": -1}, r"cell_clip must be at least 0"),
}


@pytest.mark.parametrize(("section", "values", "message"), BAD_CONFIGS.values(), ids=BAD_CONFIGS)
def test_configs_that_cannot_be_used(copied: Path, section: str, values: dict[str, Any], message: str) -> None:
    config = json.loads((copied / "tiny.json").read_text())
    config[section].update(values)
    (copied / "tiny.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=rf"{copied}.*{message}.*: (get|give)"):
        read_many_langs(copied)


def test_configs_without_what_is_needed(copied: Path) -> None:
    for content, message in (("[]", "is no config"), ("{}", "has no encoder"), ('{"encoder": 3}', "has no encoder")):
        (copied / "tiny.json").write_text(content)
        with pytest.raises(InputError, match=rf"tiny\.json {message}"):
            read_many_langs(copied)
    (copied / "config.json").write_text("[1]")
    with pytest.raises(InputError, match=r"config\.json has no config_path"):
        read_many_langs(copied)


BAD_TENSORS: dict[str, tuple[Callable[[dict[str, Tensor]], object], str]] = {
    "missing": (lambda t: t.pop("backward_layer_1.state_projection.weight"), r"lacks tensors: backward_layer_1"),
    "unknown": (lambda t: t.update(more=torch.zeros(2)), r"has unknown tensors: more"),
    "shape": (
        lambda t: t.update({"forward_layer_0.state_linearity.bias": torch.zeros(3)}),
        r"forward_layer_0\.state_linearity\.bias has the shape \[3\], where \[40\]",
    ),
    "type": (
        lambda t: t.update({"forward_layer_0.state_linearity.bias": torch.zeros(40).half()}),
        r"has the type torch\.float16",
    ),
    "not finite": (lambda t: t["forward_layer_0.state_linearity.bias"].fill_(torch.inf), r"number that is not finite"),
    "sparse": (lambda t: t.update(more=torch.zeros(2).to_sparse()), r"holds something else than tensors"),
    "no tensor": (lambda t: t.update(more=3), r"holds something else than tensors"),
}


@pytest.mark.parametrize(("edit", "message"), BAD_TENSORS.values(), ids=BAD_TENSORS)
def test_tensors_that_cannot_be_used(copied: Path, edit: Callable[[dict[str, Tensor]], object], message: str) -> None:
    change(copied / "encoder.pkl", edit)
    with pytest.raises(InputError, match=rf"encoder\.pkl.*{message}.*: get the model again"):
        read_many_langs(copied)


@pytest.mark.parametrize("name", ["char", "word"])
def test_a_table_that_is_a_single_number(copied: Path, name: str) -> None:
    change(copied / "token_embedder.pkl", lambda t: t.update({f"{name}_emb_layer.embedding.weight": torch.tensor(1.0)}))
    with pytest.raises(
        InputError, match=rf"token_embedder\.pkl.*{name}_emb_layer.* has the shape \[\].*: get the model"
    ):
        read_many_langs(copied)


@pytest.mark.parametrize("new", [True, False], ids=["archive", "pickle"])
def test_truncated_and_changed_weights(copied: Path, new: bool) -> None:
    path = copied / "encoder.pkl"
    torch.save(torch.load(path, weights_only=True), path, _use_new_zipfile_serialization=new)
    content = path.read_bytes()
    for share in (0.0, 0.01, 0.5, 0.99):
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(InputError, match=r"encoder\.pkl is damaged"):
            read_many_langs(copied)
    if new:  # which has checksums
        path.write_bytes(content[:9000] + bytes([content[9000] ^ 1]) + content[9001:])
        with pytest.raises(InputError, match=r"encoder\.pkl is damaged.*has changed"):
            read_many_langs(copied)


@pytest.mark.parametrize("name", ["char", "word"])
def test_lexicons_that_cannot_be_used(copied: Path, tmp_path: Path, name: str) -> None:
    path = copied / f"{name}.dic"
    whole = path.read_text(encoding="utf-8")
    number = whole.count("\n") + 1
    for line in ("a\tb\n", "a\t1\t2\n", "\n", "a\t-1\n", "a\t1.5\n", "a\t٣\n", f"a\t{10**20}\n"):
        path.write_text(whole + line, encoding="utf-8")
        with pytest.raises(InputError, match=rf"{name}\.dic, line {number}: an entry, a tab and its id are expected"):
            read_many_langs(copied)
    path.write_text(whole + "a\t9999\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"lexicon of (char|word).* gives 'a' the id 9999, of \d+ from 0 on"):
        read_many_langs(copied).write(tmp_path / "model")
    path.write_text(whole.replace("<oov>", "<off>"), encoding="utf-8")
    with pytest.raises(InputError, match=rf"lexicon of {name}\w* lacks <oov>"):
        read_many_langs(copied).write(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_character_of_white_space_stands_for_the_ideographic_space(copied: Path) -> None:
    path = copied / "char.dic"
    path.write_text(path.read_text(encoding="utf-8") + "\u3000\t3\n", encoding="utf-8")
    ids = read_many_langs(copied).character_cnn.characters
    assert ids is not None
    assert ids["\u3000"] == 3


@pytest.mark.parametrize("name", ["config.json", "tiny.json", "char.dic", "word.dic", "encoder.pkl"])
def test_a_missing_file_is_named(copied: Path, name: str) -> None:
    (copied / name).unlink()
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        read_many_langs(copied)
