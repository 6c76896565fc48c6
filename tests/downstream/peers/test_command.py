"""Commands of peers: what they refuse is one sentence, trainings are gone on with, and features are read by probes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from downstream.peers import character_lm, many_langs, masked_lm
from downstream.peers.character_lm import places
from downstream.peers.command import Peer, RunOptions, Training, parser, run_peer
from downstream.peers.record import PeerDirectory, PeerRecord
from downstream.probe.settings import CommandSettings, chosen, option_name
from elmoc import FeatureFile
from elmoc.settings import setting

TEXT = "a bb .\nccc dd .\n"
PEERS = (masked_lm.PEER, character_lm.PEER, many_langs.PEER)


@dataclass(frozen=True, kw_only=True)
class LengthSettings(CommandSettings):
    """Of a peer that is trained in no time."""

    size: int = setting(3, help="width", least=1)


class Lengths:
    """Layer 0 has the lengths of words, layer 1 their places."""

    layers = 2

    def __init__(self, folder: Path, record: PeerRecord) -> None:
        self.width = int((folder / "size.txt").read_text())

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        layers = [np.array([list(map(len, words)), range(len(words))], np.float32) for words in sentences]
        return [np.repeat(each[:, :, None], self.width, axis=2) for each in layers]


def train(training: Training) -> None:
    training.directory.model.mkdir(exist_ok=True)
    (training.directory.model / "size.txt").write_text(str(training.settings.size))
    clock = training.clock
    clock.finish(seconds=clock.limit, words=clock.words + 7)


def interrupted(training: Training) -> None:
    training.clock.finish(seconds=1, words=5)
    training.keep(position=3)
    raise KeyboardInterrupt


PEER = Peer(
    name="lengths", what="lengths", settings=LengthSettings(), packages=(), dump_packages=(), train=train, load=Lengths
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "sentences.txt").write_text("a bb ccc\n\nx\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(peer: Peer, line: str) -> int:
    return run_peer(peer, line.split())


def test_a_peer_is_trained_and_dumped(folder: Path) -> None:
    assert run(PEER, "train text.txt out --max-time 5s --size 4 --threads 1") == 0
    assert not (folder / "out/work").exists()
    assert run(PEER, "dump out sentences.txt features.h5 --dtype float16 --threads 1") == 0
    with FeatureFile(folder / "features.h5") as features:
        assert features.layers == 2
        assert features.width == 4
        index = features.find(["a", "bb", "ccc"])
        assert index is not None
        assert features[index][:, :, 0].tolist() == [[1, 2, 3], [0, 1, 2]]
        assert features[1].shape == (2, 0, 4)
        assert features.attributes["training_words"] == 7
        assert features.attributes["training_seconds"] == 5
        assert json.loads(str(features.attributes["peer_settings"])) == {"size": 4}


def test_an_interrupted_training_is_gone_on_with(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stopped = replace(PEER, train=interrupted)
    line = "train text.txt out --max-time 5s --threads 1"
    assert run(stopped, line) == 130
    assert "--resume goes on" in capsys.readouterr().err
    for wrong, says in (
        (line, "exists already"),
        (f"{line} --resume --size 4", "other values of settings"),
        (f"{line} --resume --seed 2", "other values of seed"),
        (f"{line} --resume --max-time 6s", "other values of max seconds"),
        (f"{line} --resume --threads 2", "other values of threads"),
        ("dump out sentences.txt f.h5", "not trained to its end"),
    ):
        assert run(PEER, wrong) == 1
        assert says in capsys.readouterr().err
    record = PeerDirectory(folder / "out").read()
    assert (record.seconds, record.words, record.position) == (1, 5, 3)
    (folder / "text.txt").write_text("other words\n")
    assert run(PEER, f"{line} --resume") == 1
    assert "out was begun with other contents of text.txt: choose another directory" in capsys.readouterr().err
    (folder / "text.txt").write_text(TEXT)
    assert run(PEER, f"{line} --resume") == 0
    assert PeerDirectory(folder / "out").read().words == 12
    assert run(PEER, f"{line} --resume") == 0
    assert "trained already" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("train none.txt out --max-time 5s", "none.txt does not exist"),
        ("train text.txt out --max-time 5", "--max-time takes"),
        ("train text.txt out --max-time 5s --size 0", "--size must be at least 1"),
        ("train text.txt out --max-time 5s --threads 0", "--threads must be"),
        ("train text.txt text.txt --max-time 5s", "text.txt exists already"),
        ("dump out sentences.txt f.h5", "not the directory of a peer"),
        ("dump other sentences.txt f.h5", "a masked_lm, not a lengths"),
        ("dump damaged sentences.txt f.h5", "size.txt is damaged"),
        ("dump right sentences.txt f.h5 --threads 0", "--threads must be"),
        ("dump right sentences.txt f.h5 --threads 5000", "--threads must be"),
        ("dump right none.txt f.h5", "none.txt does not exist"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    folder: Path, line: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("right", "damaged", "other"):
        assert run(PEER, f"train text.txt {name} --max-time 5s --threads 1") == 0
    (folder / "damaged/model/size.txt").write_text("4")
    record = PeerDirectory(folder / "other").read()
    PeerDirectory(folder / "other").write(replace(record, peer="masked_lm"))
    capsys.readouterr()
    assert run(PEER, line) == 1
    error = capsys.readouterr().err
    assert says in error
    assert error.startswith("error: ")
    assert not (folder / "f.h5").exists()


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_missing_package_names_the_extra(
    folder: Path, peer: Peer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in peer.packages:
        monkeypatch.setitem(__import__("sys").modules, package, None)
    assert run(peer, "train text.txt out --max-time 5s") == 1
    error = capsys.readouterr().err
    assert peer.packages[0] in error
    assert "install it with `pip install -e '.[peers]'` in the checkout" in error
    assert not (folder / "out").exists()


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_every_setting_is_an_option(peer: Peer) -> None:
    given = [word for name, value in vars(peer.settings).items() for word in (option_name(name), str(value))]
    options = parser(peer).parse_args(["train", "a.txt", "b.txt", "out", "--max-time", "100m", *given])
    assert vars(options).items() >= vars(peer.settings).items()
    assert [str(path) for path in options.texts] == ["a.txt", "b.txt"]
    assert chosen(options, RunOptions()) == RunOptions()


@pytest.mark.parametrize("words", [["a"], ["The", "cat", "sat"], ["Zürich", ".", "…"]])
def test_the_states_of_a_character_model_are_those_beside_the_word(words: list[str]) -> None:
    line = " ".join(words)
    forward, backward = f"\n{line} ", f"\n{line[::-1]} "
    for word, after, before in zip(words, places(words, forward=True), places(words, forward=False), strict=True):
        assert forward[:after].endswith(word)
        assert forward[after] == " "
        assert backward[:before].endswith(word[::-1])
        assert backward[before] == " "
