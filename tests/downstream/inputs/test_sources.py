"""Sources of inputs: layer states of feature files and of models, and tables of word vectors."""

import json
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sentence import TaskSentence
from downstream.inputs.sources import FeatureStates, InputSources, WordTable, model_states
from downstream.results.records import encoder_identity
from elmoc.__main__ import main
from elmoc.errors import InputError
from elmoc.word_vectors.sources import RandomVectors
from tests.downstream.conftest import words_of
from tests.elmoc.features.sentences import write_sentences

SENTENCES = [TaskSentence(tuple(words), "ten.conll", 3 * row) for row, words in enumerate(words_of())]


def test_a_sentence_that_is_missing_or_of_another_shape_is_named(tmp_path: Path) -> None:
    sentences = [(line, np.zeros((3, len(line.split()), 4), dtype=np.float32)) for line in ("a", "b c")]
    write_sentences(tmp_path / "f.h5", {}, sentences)
    with pytest.raises(InputError, match=r"Never seen.*dev\.conll, line 12"):
        FeatureStates(tmp_path / "f.h5", sentences=[TaskSentence(("Never", "seen", "."), "dev.conll", 12)])
    for shape in ((3, 1, 4), (3, 3, 4), (2, 2, 4), (3, 2, 5), (2, 4)):
        with h5py.File(tmp_path / "f.h5", "r+") as file:
            del file["1"]
            file["1"] = np.zeros(shape, dtype=np.float32)
        with pytest.raises(InputError, match=r'"b c" \(x, line 5\)'):
            FeatureStates(tmp_path / "f.h5", sentences=[TaskSentence(("b", "c"), "x", 5)])


def test_what_is_said_of_a_file_is_json(features: Path) -> None:
    described = FeatureStates(features, sentences=SENTENCES).described
    assert described == {"file": str(features), "model": "m1", "word_vectors": "v1", "layers": ["0", "1", "2"]}
    with h5py.File(features, "r+") as file:
        del file.attrs["word_vectors"]  # files of other tools may name a model, too
        file.attrs["scales"], file.attrs["text"] = [1.5, 2.0], np.bytes_(b"x")
    described = FeatureStates(features, sentences=SENTENCES).described
    assert (described["scales"], described["text"]) == ([1.5, 2.0], "x")
    assert described["file_size"] == features.stat().st_size
    assert json.loads(json.dumps(described)) == described


@pytest.mark.parametrize("kind", ["words", "subwords"])
def test_states_of_a_model_are_those_of_a_feature_file(
    model_path: Path, subword_model: Path, tmp_path: Path, kind: str
) -> None:
    model = model_path if kind == "words" else subword_model
    text = tmp_path / "sentences.txt"
    text.write_text("".join(" ".join(sentence.words) + "\n" for sentence in SENTENCES), encoding="utf-8")
    assert main(["dump-features", str(model), str(text), str(tmp_path / "f.h5")]) == 0
    dumped = FeatureStates(tmp_path / "f.h5", sentences=SENTENCES)
    states = model_states(model, sentences=SENTENCES)
    assert (states.layers, states.names, states.width) == (dumped.layers, dumped.names, dumped.width)
    for batch in (SENTENCES, SENTENCES[::-1], SENTENCES[:1], [*SENTENCES[-4:], SENTENCES[-4]]):
        torch.testing.assert_close(states.lookup(batch), dumped.lookup(batch), rtol=0, atol=0)
    ours, theirs = states.described, dumped.described
    assert ours["directory"] == str(model)
    assert encoder_identity(ours) == encoder_identity(theirs) != encoder_identity({**theirs, "layers": ["0"]})


def test_vectors_that_are_not_finite_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Source(RandomVectors):
        def lookup(self, words: Sequence[str]) -> np.ndarray:
            vectors = super().lookup(words)
            vectors[list(words).index("London"), 1] = np.nan
            return vectors

    monkeypatch.setattr("downstream.inputs.sources.open_word_vectors", lambda *_, **__: Source(seed=1, size=4))
    with pytest.raises(InputError, match=r"few\.vec"):
        WordTable("few.vec", sentences=SENTENCES)


def test_several_sources_stand_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "few.vec").write_text("London 1 2\nOakland 3 4\nParis 8 -4\n")
    (tmp_path / "others.txt").write_text("came 100 200 300\nOakland 400 700 600\nParis 500 100 -300\n")
    train = [TaskSentence(("Oakland", "came", "London"), "x", 1), TaskSentence(("Paris", "none"), "x", 2)]
    paths = [str(tmp_path / "few.vec"), str(tmp_path / "others.txt")]
    words = WordTable(*paths, sentences=train)
    inputs = ProbeInputs(InputSources(words=words, states=None))
    assert inputs(train)[0][0].tolist() == [[3, 4, 400, 700, 600], [0, 0, 100, 200, 300], [1, 2, 0, 0, 0]]
    description = words.described
    alone = [WordTable(path, sentences=train) for path in paths]
    assert (description["size"], description["words_without_vector"]) == (5, 1)
    for name in ("origin", "fingerprint"):
        assert description[name] == " + ".join(each.described[name] for each in alone)
    inputs.standardise_words(train)
    expected = []
    for each in alone:
        of_one = ProbeInputs(InputSources(words=each, states=None))
        of_one.standardise_words(train)
        expected.append(of_one(train)[0])
    torch.testing.assert_close(inputs(train)[0], torch.cat(expected, dim=2))
    again = ProbeInputs(InputSources(words=words, states=None))
    again.load_state_dict(inputs.state_dict())
    assert torch.equal(again(train)[0], inputs(train)[0])
