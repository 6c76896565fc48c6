"""Features of a pretrained model: subwords become words, and long sentences are cut and joined."""

from itertools import accumulate, chain, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")
from elmoc.errors import InputError
from experiments.peers import pretrained, static_vectors
from experiments.peers.pretrained import Encoder, open_encoder, pieces
from tests.tiny_bert import tiny_bert

SENTENCES = [["bed", "ab"], ["a"], ["ö", "bed", "a", "de", "a"]]
PIECES = {"bed": ["b", "##e", "##d"], "ab": ["a", "##b"], "de": ["d", "##e"], "a": ["a"], "ö": ["[UNK]"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_bert(tmp_path / "bert", ["abcdef"])


@torch.inference_mode()
def states_alone(encoder: Encoder, words: list[str], pooling: str) -> np.ndarray:
    """[4, n, 16] of a sentence by itself, without padding, word by word."""
    vocabulary = encoder.tokenizer.get_vocab()
    divided = [[vocabulary[piece] for piece in PIECES[word]] for word in words]
    ids = torch.tensor([[2, *chain.from_iterable(divided), 3]])
    layers = torch.cat(encoder.model(ids, output_hidden_states=True).hidden_states)
    spans = pairwise(accumulate(map(len, divided), initial=1))
    return np.stack([layers[:, a : b if pooling == "mean" else a + 1].mean(1) for a, b in spans], axis=1)


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_words_of_a_batch_are_those_of_sentences_alone(folder: Path, pooling: pretrained.Pooling) -> None:
    encoder = open_encoder(folder, pooling=pooling, bf16=False)
    for words, states in zip(SENTENCES, encoder.encode(SENTENCES), strict=True):
        np.testing.assert_allclose(states, states_alone(encoder, words, pooling), atol=1e-5)


def test_features_of_other_options_are_not_taken_over(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("bed ab\n")
    files = (folder, tmp_path / "out", tmp_path / "s.txt")
    pretrained.write(pretrained.Options(*files))
    pretrained.write(pretrained.Options(*files))
    with pytest.raises(InputError, match="other sentences or options"):
        pretrained.write(pretrained.Options(*files, "first"))


def test_a_long_sentence_is_read_in_pieces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "POSITIONS", 7)  # five between [CLS] and [SEP]
    encoder = open_encoder(folder, bf16=False)
    assert list(pieces([1, 3, 1, 2, 1], encoder.positions)) == [(0, 3), (3, 5)]
    parts = [states_alone(encoder, part, "mean") for part in (SENTENCES[2][:3], SENTENCES[2][3:])]
    np.testing.assert_allclose(encoder.encode(SENTENCES)[2], np.concatenate(parts, axis=1), atol=1e-5)


def test_a_static_word_is_the_mean_of_its_pieces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_vectors, "WIDTH", 4)
    encoder = open_encoder(folder, bf16=False)
    vectors = static_vectors.piece_vectors(encoder)
    rows = [encoder.tokenizer.get_vocab()[piece] for piece in PIECES["bed"]]
    found = static_vectors.word_vectors(encoder, vectors, ["bed"])
    np.testing.assert_allclose(found, [vectors[rows].mean(0)], rtol=1e-6)
