"""flair: embeddings of tokens are the layer states of words, taggers train on them, and are saved and moved."""

from pathlib import Path

import pytest

pytest.importorskip("flair", reason="flair is not installed: make test-integrations")
import flair
import torch
from elmoc.errors import InputError
from elmoc.interop.flair import ElmocEmbeddings
from elmoc.model_directory import write_model_directory
from flair.data import Corpus, Sentence
from flair.datasets import FlairDatapointDataset
from flair.file_utils import load_torch_state
from flair.models import SequenceTagger
from flair.trainers import ModelTrainer
from tests.elmoc.interop.conftest import run_page_programs
from tests.tiny import learnable_sentences, tiny_model

from elmoc import ElmoC

TEXT = "I sat on the bank ."


def sentences(count: int, seed: int) -> list[Sentence]:
    """Words w0 … w19 with a tag by their number."""
    made = []
    for words in learnable_sentences(count, seed):
        sentence = Sentence(words)
        for token, word in zip(sentence, words, strict=True):
            token.add_label("parity", "even" if int(word[1:]) % 2 == 0 else "odd")
        made.append(sentence)
    return made


def data() -> Corpus:
    train, dev, test = (FlairDatapointDataset(sentences(count, count)) for count in (60, 10, 20))
    return Corpus(train, dev, test)


def tagger_on(embeddings: ElmocEmbeddings, corpus: Corpus) -> SequenceTagger:
    labels = corpus.make_label_dictionary("parity", add_unk=False)
    return SequenceTagger(
        embeddings, labels, tag_type="parity", hidden_size=32, use_crf=False, dropout=0, locked_dropout=0
    )


def test_embeddings_are_the_layer_states(model_path: Path) -> None:
    embeddings = ElmocEmbeddings(model_path, layers=[2, 0])
    sentence = Sentence(TEXT.split())
    embeddings.embed(sentence)
    states = ElmoC.from_pretrained(model_path).embed(TEXT.split())
    vectors = torch.stack([token.get_embedding() for token in sentence])
    torch.testing.assert_close(vectors, torch.cat([states[2], states[0]], dim=-1))
    assert embeddings.embedding_length == vectors.shape[1]
    assert embeddings.embedding_type == "word-level"
    assert embeddings.name.endswith(f"-{ElmoC.from_pretrained(model_path).precision}")
    assert vectors.device.type == flair.device.type


def test_a_tagger_trains_is_saved_and_loaded(model_path: Path, tmp_path: Path) -> None:
    flair.set_seed(1)
    corpus = data()
    tagger = tagger_on(ElmocEmbeddings(model_path), corpus)
    trainer = ModelTrainer(tagger, corpus)
    result = trainer.train(
        tmp_path / "out", learning_rate=0.02, mini_batch_size=16, max_epochs=8, optimizer=torch.optim.Adam
    )
    assert result["test_score"] > 0.9
    loaded = SequenceTagger.load(tmp_path / "out/final-model.pt")
    assert loaded.evaluate(corpus.test, "parity").main_score == tagger.evaluate(corpus.test, "parity").main_score


def test_a_saved_tagger_names_its_model(model_path: Path, tmp_path: Path) -> None:
    tagger_on(ElmocEmbeddings(model_path, layers=[2, 1]), data()).save(tmp_path / "tagger.pt")
    state = load_torch_state(str(tmp_path / "tagger.pt"))
    assert not [name for name in state["state_dict"] if name.startswith("embeddings")]
    model_path.rename(tmp_path / "moved")
    with pytest.raises(InputError):
        SequenceTagger.load(tmp_path / "tagger.pt")
    state["embeddings"]["model"] = str(tmp_path / "moved")
    loaded = SequenceTagger.load(state)
    assert loaded.embeddings.embedding_length == 20
    changed = tiny_model()
    next(changed.encoder.parameters()).data.add_(1)
    write_model_directory(model_path, changed)
    with pytest.raises(InputError):
        SequenceTagger.load(tmp_path / "tagger.pt")


def test_the_example_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page_programs("flair", tmp_path, monkeypatch)
    assert (tmp_path / "tagger/final-model.pt").exists()
