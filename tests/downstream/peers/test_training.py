"""Trainings of peers with the packages themselves: each is trained for a moment, gone on with, and dumped."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from downstream.peers import character_lm, character_training, many_langs, masked_lm
from downstream.peers.clock import Clock
from downstream.peers.command import Peer, run_peer
from downstream.peers.record import PeerDirectory
from elmoc import FeatureFile
from tests.tiny import learnable_sentences

INSTALLED = "the packages of the extra peers are not installed: make test-peers"
SENTENCES = [["w1", "Zürich", "."], ["w2"] * 70, ["w3"]]
TINY = {
    "masked_lm": "--vocabulary 120 --layers 2 --size 8 --heads 2 --intermediate-size 16 --positions 40",
    "character_lm": "--hidden-size 8 --embedding-size 5 --sequence-length 10 --streams 4 --part-words 300 --parts 2",
    "many_langs": "--projection-size 6 --cell-size 8 --word-size 5 --character-size 4 --samples 500 "
    "--batch-size 4 --words 500",
}


def trained(peer: Peer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A peer that was trained for two seconds, and its features."""
    monkeypatch.chdir(folder)
    text = "".join(" ".join(words) + "\n" for words in learnable_sentences(400, 1))
    (folder / "text.txt").write_text(text)
    (folder / "sentences.txt").write_text("".join(" ".join(words) + "\n" for words in SENTENCES), encoding="utf-8")
    line = f"train text.txt out --max-time 2s --threads 2 {TINY[peer.name]}"
    assert run_peer(peer, line.split()) == 0
    assert run_peer(peer, ["dump", "out", "sentences.txt", "features.h5"]) == 0
    directory = PeerDirectory(folder / "out")
    record = directory.trained(peer.name)
    assert record.seconds >= 2
    assert record.words > 0
    lines = [json.loads(each) for each in directory.log.read_text().splitlines()]
    assert {"seconds", "words", "loss", "learning_rate"} <= lines[-1].keys()
    assert not directory.work.exists()
    return peer.load(directory.model, record)


def states_of(folder: Path) -> list[np.ndarray]:
    with FeatureFile(folder / "features.h5") as features:
        return [np.array(features[index]) for index in range(len(features))]


def same(some: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> None:
    for one, other in zip(some, others, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_masked_lm_gives_what_transformers_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = pytest.importorskip("transformers", reason=INSTALLED)
    torch = pytest.importorskip("torch")
    encoder = trained(masked_lm.PEER, tmp_path, monkeypatch)
    states = states_of(tmp_path)
    assert [each.shape for each in states] == [(3, len(words), 8) for words in SENTENCES]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out/model")
    model = transformers.AutoModel.from_pretrained(tmp_path / "out/model").eval()
    for words, ours in ((SENTENCES[0], states[0]), (SENTENCES[2], states[2])):
        encoded = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        firsts = [encoded.word_ids().index(word) for word in range(len(words))]
        with torch.inference_mode():
            theirs = torch.stack(model(**encoded, output_hidden_states=True).hidden_states)
        same([ours], [theirs[:, 0, firsts].numpy()])
    same(states, [encoder.encode([words])[0] for words in SENTENCES])


def test_a_character_lm_gives_what_flair_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("flair", reason=INSTALLED)
    from flair.data import Sentence
    from flair.embeddings import FlairEmbeddings, StackedEmbeddings

    encoder = trained(character_lm.PEER, tmp_path, monkeypatch)
    states = states_of(tmp_path)
    folder = tmp_path / "out/model"
    theirs = StackedEmbeddings([FlairEmbeddings(folder / f"{name}.pt") for name in character_lm.DIRECTIONS])
    for words, ours in zip(SENTENCES, states, strict=True):
        sentence = Sentence(words)
        theirs.embed(sentence)
        same([ours[0]], [np.stack([token.embedding.numpy() for token in sentence])])
    same(states, [encoder.encode([words])[0] for words in SENTENCES])


def test_many_langs_gives_what_the_package_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip("elmoformanylangs", reason=INSTALLED)
    trained(many_langs.PEER, tmp_path, monkeypatch)
    states = states_of(tmp_path)
    embedder = package.Embedder(str(tmp_path / "out/model"), batch_size=1)
    for words, ours in zip(SENTENCES, states, strict=True):
        embedder.model.encoder._states = None
        same([ours], embedder.sents2elmo([words], output_layer=-2))


@pytest.mark.parametrize("peer", [masked_lm.PEER, many_langs.PEER], ids=lambda peer: peer.name)
def test_a_training_that_is_interrupted_goes_on_from_its_checkpoint(
    peer: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in peer.packages:
        pytest.importorskip(package, reason=INSTALLED)

    write = PeerDirectory.write

    def interrupted(self: PeerDirectory, record: Any) -> None:
        write(self, record)
        if record.checkpoint:
            raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    text = "".join(" ".join(words) + "\n" for words in learnable_sentences(400, 1))
    (tmp_path / "text.txt").write_text(text)
    line = f"train text.txt out --max-time 4s --threads 1 {TINY[peer.name]}"
    due = Clock.is_due
    with monkeypatch.context() as context:
        context.setattr(Clock, "is_due", lambda self, every: due(self, 0.5))
        context.setattr(PeerDirectory, "write", interrupted)
        assert run_peer(peer, line.split()) == 130
    left = PeerDirectory(tmp_path / "out").read()
    assert left.checkpoint
    assert 0.5 <= left.seconds < 4
    assert run_peer(peer, f"{line} --resume".split()) == 0
    done = PeerDirectory(tmp_path / "out").trained(peer.name)
    assert done.words > left.words


def test_a_direction_that_is_finished_is_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one thread the forward model is trained first; an interruption of the backward one leaves it as it is."""
    pytest.importorskip("flair", reason=INSTALLED)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("".join(" ".join(words) + "\n" for words in learnable_sentences(400, 1)))
    line = f"train text.txt out --max-time 2s --threads 1 {TINY['character_lm']}"
    train_direction = character_training.train_direction

    def interrupted(direction: character_training.Direction) -> character_training.DirectionProgress:
        if direction.name == "backward":
            raise KeyboardInterrupt
        return train_direction(direction)

    with monkeypatch.context() as context:
        context.setattr(character_training, "train_direction", interrupted)
        assert run_peer(character_lm.PEER, line.split()) == 130
    forward = (tmp_path / "out/model/forward.pt").read_bytes()
    assert run_peer(character_lm.PEER, f"{line} --resume".split()) == 0
    assert (tmp_path / "out/model/forward.pt").read_bytes() == forward
    assert PeerDirectory(tmp_path / "out").trained("character_lm").seconds >= 2
