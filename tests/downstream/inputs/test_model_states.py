"""Layer states computed from a model: those of a feature file dumped from it."""

from pathlib import Path

import pytest
import torch

from downstream.inputs.feature_states import FeatureStates
from downstream.inputs.kinds import INPUT_KINDS
from downstream.inputs.model_states import ModelStates
from downstream.inputs.probe_inputs import InputSources, ProbeInputs
from downstream.inputs.sentence import Sentence
from downstream.inputs.word_table import WordTable
from downstream.results.records import encoder_identity
from elmoc.__main__ import main
from elmoc.errors import InputError
from tests.downstream.conftest import words_of

SENTENCES = [Sentence(tuple(words), "ten.conll", 3 * row) for row, words in enumerate(words_of() + words_of()[:3])]
PLENTY = 10**9
SOME = 20 * 3 * 10 * 4
"""Bytes of 20 words."""


@pytest.fixture
def dumped(model_path: Path, tmp_path: Path) -> FeatureStates:
    text = tmp_path / "sentences.txt"
    text.write_text("".join(" ".join(sentence.words) + "\n" for sentence in SENTENCES), encoding="utf-8")
    assert main(["dump-features", str(model_path), str(text), str(tmp_path / "f.h5")]) == 0
    return FeatureStates(tmp_path / "f.h5", sentences=SENTENCES)


@pytest.mark.parametrize("limit", [PLENTY, SOME, 0])
def test_states_are_those_of_a_feature_file(
    model_path: Path, dumped: FeatureStates, limit: int, capsys: pytest.CaptureFixture[str]
) -> None:
    states = ModelStates(model_path, sentences=SENTENCES, memory_limit=limit)
    assert (states.layers, states.width) == (dumped.layers, dumped.width)
    for batch in (SENTENCES, SENTENCES[::-1], SENTENCES[:1], SENTENCES[-4:]):
        for ours, theirs in zip(states.lookup(batch), dumped.lookup(batch), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    kept = {PLENTY: 10, SOME: 3, 0: 0}[limit]
    told = f"states of {10 - kept} of 10 sentences do not fit into {'0 B' if not limit else '2.4 KB'} and are computed"
    assert (told in capsys.readouterr().out) == (kept < 10)


def test_a_probe_reads_them_beside_word_vectors(model_path: Path, dumped: FeatureStates) -> None:
    words = WordTable("random:3:5", sentences=SENTENCES)
    states = ModelStates(model_path, sentences=SENTENCES, memory_limit=SOME)
    computed, read = (
        ProbeInputs(InputSources(words=words, states=source).select(INPUT_KINDS["both"])) for source in (states, dumped)
    )
    torch.testing.assert_close(computed(SENTENCES)[0], read(SENTENCES)[0], atol=1e-5, rtol=0)
    alone, _ = ProbeInputs(InputSources(words=words, states=states).select(INPUT_KINDS["model"]))(SENTENCES)
    torch.testing.assert_close(alone, computed(SENTENCES)[0][:, :, :10])
    computed(SENTENCES)[0].square().sum().backward()
    assert all(parameter.grad is not None for parameter in computed.parameters())


def test_the_model_is_named_as_in_a_feature_file(model_path: Path, dumped: FeatureStates) -> None:
    ours = ModelStates(model_path, sentences=SENTENCES, memory_limit=0).describe()
    theirs = dumped.describe()
    assert ours.pop("directory") == str(model_path)
    assert ours.items() <= theirs.items()
    assert encoder_identity(ours) == encoder_identity(theirs) != encoder_identity({**theirs, "carry_state": True})
    assert len(ours["model"]) == 16


def test_words_of_a_model_of_subwords_are_read_as_dumps_of_that_pooling_have_them(
    subword_model: Path, tmp_path: Path
) -> None:
    text = tmp_path / "sentences.txt"
    text.write_text("".join(" ".join(sentence.words) + "\n" for sentence in SENTENCES), encoding="utf-8")
    identities = []
    for pooling in (None, "last", "mean"):
        options = [] if pooling is None else ["--pooling", pooling]
        file = tmp_path / f"{pooling}.h5"
        assert main(["dump-features", str(subword_model), str(text), str(file), *options]) == 0
        dumped = FeatureStates(file, sentences=SENTENCES)
        states = ModelStates(subword_model, sentences=SENTENCES, memory_limit=SOME, pooling=pooling)
        for ours, theirs in zip(states.lookup(SENTENCES), dumped.lookup(SENTENCES), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
        assert states.describe()["pooling"] == (pooling or "first")
        identities.append(encoder_identity(states.describe()))
        assert identities[-1] == encoder_identity(dumped.describe())
    assert len(set(identities)) == 3


def test_a_model_that_cannot_be_read(model_path: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none is not a model directory"):
        ModelStates(tmp_path / "none", sentences=SENTENCES, memory_limit=PLENTY)
    with pytest.raises(InputError, match="are not the word vectors of this model"):
        ModelStates(model_path, sentences=SENTENCES, memory_limit=PLENTY, vectors="random:4:6")
    with pytest.raises(InputError, match="reads whole words, and not subwords: leave pooling out"):
        ModelStates(model_path, sentences=SENTENCES, memory_limit=PLENTY, pooling="mean")
    with pytest.raises(InputError, match="cuda:99 is not there"):
        ModelStates(model_path, sentences=SENTENCES, memory_limit=PLENTY, device="cuda:99")
