"""A lookup of subwords: whole runs, with vectors of its own and tied with the softmax, and the models they leave."""

from typing import Any

import pytest
import torch
from data_scripts.build_subwords import SubwordOptions, build_subwords
from elmoc.corpus import Corpus
from elmoc.model import ElmoC
from elmoc.model_directory import read_model_directory
from elmoc.word_vectors.subwords import SubwordVectors
from pretrain.run.directory import read_checkpoint, read_metrics
from tests.pretrain.conftest import TinyRuns, assert_resumes_exactly, assert_same, last_checkpoint
from tests.tiny import learnable_sentences, write_corpus

LOOKUP: dict[str, Any] = {
    "input_layer__kind": "subwords",
    "encoder__input_layer": "identity",
    "output_layer__kind": "softmax",
    "data__input_vectors": "none at all",
    "data__target_vectors": "none at all",
    "log__checkpoint_updates": 6,
}
TIED = LOOKUP | {"output_layer__tied": True, "output_layer__projection_regularisation": 0.15}


@pytest.fixture
def runs(runs: TinyRuns, tiny_subwords: Corpus) -> TinyRuns:
    runs.corpus = tiny_subwords.path
    return runs


@pytest.mark.parametrize("settings", [LOOKUP, TIED], ids=["own", "tied"])
def test_a_resumed_run_ends_the_same(runs: TinyRuns, settings: dict[str, Any]) -> None:
    run = runs.run("run", **settings)
    assert_resumes_exactly(runs, "run", 6, **settings)
    assert last_checkpoint(run)["optimisers"].keys() == {"forward", "backward", "input", "shared"}


def test_tied_vectors_are_one_tensor(runs: TinyRuns) -> None:
    state = runs.setup(encoder__dropout=0, **TIED).new_state()
    everything = [weight for name in state.optimisers for weight in state.parameters(name)]
    assert len({id(weight) for weight in everything}) == len(everything)
    run = runs.run("run", **TIED)
    checkpoint = last_checkpoint(run)
    assert checkpoint["input"].keys() == {"rows"}
    assert checkpoint["heads"].keys() == {"shared.bias", "shared.projection"}
    model = read_model_directory(run.path)
    stored = model.read_stored_vectors()
    assert isinstance(stored, SubwordVectors)
    best = read_checkpoint(run.checkpoint_path(model.training["updates"]))
    assert torch.equal(stored.vectors, 8**0.5 * best["input"]["rows"])


def test_it_learns_and_its_model_reads_words(runs: TinyRuns) -> None:
    sizes = {"encoder__cell_size": 32, "encoder__projection_size": 16, "train__updates": 120}
    run = runs.run("run", **TIED | sizes | {"evaluation__every_updates": 60, "log__checkpoint_updates": 60})
    *_, last = read_metrics(run.path, "evaluation")
    assert last["accuracy_at_1"] > 2 * last["constant_accuracy_at_1"]
    assert last["vocabulary_perplexity"] < 0.7 * last["constant_vocabulary_perplexity"]
    elmo = ElmoC.from_pretrained(run.path)
    training = elmo.directory.training
    assert training["units_of_a_word"] > 1
    assert elmo.training_words == round(training["words"] / training["units_of_a_word"])
    states = elmo.embed(["w1", "unheard-of", "w2"])
    assert states.shape == (3, 3, 32)
    assert states.isfinite().all()


def test_going_on_takes_the_vectors_and_refuses_other_units(runs: TinyRuns, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.run("run", **TIED)
    once = TIED | {"train__updates": 1, "log__keep": 10}
    same = runs.run("same", "--init-from", str(run.path), **once)
    assert "going on from" in capsys.readouterr().out
    first = torch.load(same.checkpoints / f"{0:09d}.pt")
    stored = read_model_directory(run.path).read_stored_vectors()
    assert isinstance(stored, SubwordVectors)
    torch.testing.assert_close(8**0.5 * first["input"]["rows"], stored.vectors)
    assert_same(dict(first["heads"]), dict(read_model_directory(run.path).output_layer.weights or {}))
    words = write_corpus(
        runs.folder / "words", [[["w19", "w18"]] * 40, learnable_sentences(40, 7)], [learnable_sentences(40, 8)]
    )
    build_subwords(SubwordOptions(words=words.path, corpus=runs.folder / "units", units=270, workers=1))
    runs.corpus = runs.folder / "units"
    assert runs.status("other", "--init-from", str(run.path), **once) == 1
    assert "not the model's" in capsys.readouterr().err
