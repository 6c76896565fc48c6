"""Features of a pretrained model: subwords become words, and long sentences are cut and joined."""

from itertools import accumulate, chain, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")
from experiments.peers import pretrained, static_vectors  # noqa: E402
from experiments.peers.pretrained import Encoder, open_encoder, pieces  # noqa: E402

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "un", "##believ", "##able", "a", "film", "##s"]
SENTENCES = [["unbelievable", "films"], ["a"], ["zzz", "unbelievable", "a", "films", "film"]]
DIVIDED = {"unbelievable": [6, 7, 8], "films": [10, 11], "film": [10], "a": [9], "zzz": [1]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny random BERT, whose words differ much, and its tokenizer."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.BertConfig(vocab_size=len(WORDS), initializer_range=0.2, **sizes)
    transformers.BertModel(config).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"), model_max_length=64).save_pretrained(tmp_path)
    return tmp_path


@torch.inference_mode()
def states_alone(encoder: Encoder, words: list[str], pooling: str) -> np.ndarray:
    """[3, n, 8] of a sentence by itself, without padding, word by word."""
    divided = [DIVIDED[word] for word in words]
    ids = torch.tensor([[2, *chain.from_iterable(divided), 3]])
    layers = torch.cat(encoder.model(ids, output_hidden_states=True).hidden_states)
    spans = pairwise(accumulate(map(len, divided), initial=1))
    return np.stack([layers[:, a : b if pooling == "mean" else a + 1].mean(1) for a, b in spans], axis=1)


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_words_of_a_batch_are_those_of_sentences_alone(folder: Path, pooling: pretrained.Pooling) -> None:
    encoder = open_encoder(folder, pooling=pooling, bf16=False)
    for words, states in zip(SENTENCES, encoder.encode(SENTENCES), strict=True):
        np.testing.assert_allclose(states, states_alone(encoder, words, pooling), atol=1e-5)


def test_a_long_sentence_is_read_in_pieces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "POSITIONS", 7)  # five between [CLS] and [SEP]
    encoder = open_encoder(folder, bf16=False)
    assert list(pieces([1, 3, 1, 2, 1], encoder.positions)) == [(0, 3), (3, 5)]
    parts = [states_alone(encoder, part, "mean") for part in (SENTENCES[2][:3], SENTENCES[2][3:])]
    np.testing.assert_allclose(encoder.encode(SENTENCES)[2], np.concatenate(parts, axis=1), atol=1e-5)


def test_a_static_word_is_the_mean_of_its_weighted_pieces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_vectors, "WIDTH", 4)
    encoder = open_encoder(folder, bf16=False)
    vectors = static_vectors.piece_vectors(encoder)
    assert not vectors[5].any()  # [unused0] is left out
    found = static_vectors.word_vectors(encoder, vectors, ["unbelievable", "a"])
    np.testing.assert_allclose(found, [vectors[[6, 7, 8]].mean(0), vectors[9]], rtol=1e-5)
