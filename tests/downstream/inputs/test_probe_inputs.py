"""Inputs of a probe: the numbers of the feature file and of the word vectors, padded and mixed."""

from pathlib import Path

import numpy as np
import pytest
import torch
from downstream.inputs.options import INPUT_KINDS, StateSettings
from downstream.inputs.probe_inputs import ProbeInputs, valid_mask
from downstream.inputs.sentence import TaskSentence
from downstream.inputs.sources import FeatureStates, InputSources, WordTable
from elmoc.features.reader import FeatureFile
from elmoc.word_vectors.sources import RandomVectors
from tests.downstream.conftest import words_of
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

SENTENCES = [TaskSentence(tuple(words), "ten.conll", 3 * row) for row, words in enumerate(words_of())]


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        (StateSettings(), [0, 1, 2]),
        (StateSettings(state_layers="0,2"), [0, 2]),
        (StateSettings(state_layers="1,2"), [1, 2]),
        (StateSettings(state_layers="top"), [2]),
    ],
)
def test_chosen_layers_and_gradients_are_those_of_a_plain_mix(
    features: Path, settings: StateSettings, rows: list[int]
) -> None:
    states = FeatureStates(features, sentences=SENTENCES)
    inputs = ProbeInputs(InputSources(words=None, states=states), settings)
    batch = [SENTENCES[row] for row in (4, 9, 0, 4)]
    weights = torch.rand(len(rows), dtype=torch.float64, requires_grad=True)
    gamma = torch.rand((), dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        inputs.mix.gamma.fill_(gamma)
        inputs.mix.weights.copy_(weights)
    assert inputs.mix_weights() == pytest.approx([*weights.softmax(dim=0).tolist(), gamma.item()])
    assert torch.as_tensor(inputs.mix_penalty()).item() == pytest.approx(weights.square().sum().item())
    x, lengths = inputs(batch)
    assert lengths.tolist() == [len(sentence.words) for sentence in batch]
    expected = []
    for sentence in batch:
        with FeatureFile(features) as file:
            layers = torch.from_numpy(file[SENTENCES.index(sentence)][rows]).double()  # [L, n, 2P]
        expected.append((gamma * weights.softmax(dim=0)[:, None, None] * layers).sum(dim=0))
    plain = pad_sequence(expected, batch_first=True)
    torch.testing.assert_close(x.double(), plain, atol=1e-5, rtol=1e-5)
    gradient = torch.randn(x.shape)
    x.backward(gradient)
    plain.backward(gradient.double())
    for found, wanted in ((inputs.mix.weights.grad, weights.grad), (inputs.mix.gamma.grad, gamma.grad)):
        assert found is not None
        assert wanted is not None
        torch.testing.assert_close(found.double(), wanted.reshape(found.shape), atol=1e-5, rtol=1e-5)


def test_vectors_are_scaled_to_the_states_beside_them(features: Path) -> None:
    words = WordTable("random:3:5", "random:4:2", sentences=SENTENCES)
    sources = InputSources(words=words, states=FeatureStates(features, sentences=SENTENCES))
    inputs = ProbeInputs(sources)
    with torch.no_grad():
        inputs.mix.gamma.fill_(0.25)
    inputs.standardise_words(SENTENCES)
    before, lengths = inputs(SENTENCES)
    inputs.match_words(SENTENCES)
    after, _ = inputs(SENTENCES)
    inside = valid_mask(lengths, before.device)

    def size(x: Tensor) -> Tensor:
        return x[inside].square().mean().sqrt()

    torch.testing.assert_close(size(after[..., 12:]), size(after[..., :12]))
    assert torch.equal(after[..., :12], before[..., :12]), "states stay"
    torch.testing.assert_close(after[..., 12:] / size(after[..., 12:]), before[..., 12:] / size(before[..., 12:]))
    for kind in ("vectors", "features"):
        alone = ProbeInputs(sources.select(INPUT_KINDS[kind]))
        whole, _ = alone(SENTENCES)
        alone.match_words(SENTENCES)
        assert torch.equal(alone(SENTENCES)[0], whole), "nothing stands beside them"


def test_both_is_states_then_vectors(features: Path) -> None:
    words = WordTable("random:3:5", sentences=SENTENCES)
    states = FeatureStates(features, sentences=SENTENCES)
    sources = InputSources(words=words, states=states)
    both, lengths = ProbeInputs(sources.select(INPUT_KINDS["both"]))(SENTENCES)
    alone, _ = ProbeInputs(sources.select(INPUT_KINDS["features"]))(SENTENCES)
    vectors, _ = ProbeInputs(sources.select(INPUT_KINDS["vectors"]))(SENTENCES)
    assert torch.equal(both, torch.cat([alone, vectors], dim=2))
    for row, (sentence, length) in enumerate(zip(SENTENCES, lengths.tolist(), strict=True)):
        np.testing.assert_array_equal(
            vectors[row, :length].numpy(), RandomVectors(seed=3, size=5).lookup(sentence.words)
        )
        assert not vectors[row, length:].any()
    alone = ProbeInputs(sources.select(INPUT_KINDS["vectors"]))
    assert (alone.mix_penalty(), alone.mix_parameters()) == (0, [])
    assert [each.numel() for each in ProbeInputs(sources).mix_parameters()] == [states.layers, 1], "and the scale"


def test_word_vectors_at_unit_length(features: Path) -> None:
    words = WordTable("random:3:5", "random:4:2", sentences=SENTENCES)
    inputs = ProbeInputs(InputSources(words=words, states=FeatureStates(features, sentences=SENTENCES)))
    x, lengths = inputs(SENTENCES)
    states, *vectors = inputs.with_unit_words(x).split([12, 5, 2], dim=2)
    assert torch.equal(states, x[..., :12])
    for unit, whole in zip(vectors, x[..., 12:].split([5, 2], dim=2), strict=True):
        torch.testing.assert_close(unit.norm(dim=2), valid_mask(lengths, x.device).float())
        torch.testing.assert_close(unit * whole.norm(dim=2, keepdim=True), whole)


def test_word_vectors_are_standardised_over_the_words_of_the_training_data(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("a 1 2\nb 3 6\nc 5 1\nfar 100 100\n")
    train = [TaskSentence(("a", "b", "none"), "f", 1), TaskSentence(("c", "a"), "f", 2)]
    other = TaskSentence(("far", "none", "a"), "f", 3)
    inputs = ProbeInputs(InputSources(words=WordTable(str(tmp_path / "v.txt"), sentences=[*train, other]), states=None))
    raw, _ = inputs([*train, other])
    assert raw[2].tolist() == [[100, 100], [0, 0], [1, 2]]
    inputs.standardise_words(train)
    distinct = np.array([[1, 2], [3, 6], [5, 1]], dtype=np.float64)
    mean = distinct.mean(axis=0)
    deviation = (distinct - mean).std(ddof=1)
    assert inputs.deviation.tolist() == pytest.approx([deviation] * 2)
    x, _ = inputs([*train, other])
    expected = (np.array([[100, 100], [1, 2]]) - mean) / deviation
    assert x[2, [0, 2]].numpy() == pytest.approx(expected, rel=1e-5)
    assert x[2, 1].tolist() == [0, 0], "a word without a vector stays zero"
    assert x[1, 2].tolist() == [0, 0], "and so does what stands after the end"
    again = ProbeInputs(InputSources(words=WordTable(str(tmp_path / "v.txt"), sentences=[other]), states=None))
    again.load_state_dict(inputs.state_dict())
    torch.testing.assert_close(again([other])[0][0], x[2])
