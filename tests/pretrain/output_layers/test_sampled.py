"""Sampled softmax, with trained vectors and with fixed ones: plain twins, the sampler's distribution, whole runs."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from elmoc.corpus import Corpus
from elmoc.word_vectors.table import VectorTable
from pretrain.data.candidates import LogUniformSampler, draws_for
from pretrain.data.windows import Position
from pretrain.output_layers.contrastive import ContrastiveSettings
from pretrain.output_layers.retrieval import retrieval
from pretrain.output_layers.sampled import FixedOutput, FixedSettings, SampledOutput, SampledSettings
from torch import Tensor

from pretrain.output_layers import Candidates, Loss, OutputLayer, SampleSettings, Targets, sampled

TYPES, WIDTH, PROJECTION = 40, 6, 5


def sampler_of(samples: int, *, types: int = 0, lexicon: int = TYPES) -> LogUniformSampler:
    counts = np.arange(2 * lexicon, lexicon, -1)
    return LogUniformSampler(counts, settings=SampleSettings(samples, types), seed=1)


# the sampler


@pytest.mark.parametrize("types", [0, 25])
def test_classes_are_drawn_as_often_as_said(types: int) -> None:
    sampler = sampler_of(8, types=types)
    classes = types + 1 if types else TYPES
    seen, sizes = np.zeros(classes), []
    for number in range(4000):
        ids, drawn = sampler.candidates(np.empty(0, dtype=np.uint32), Position(1, 2, number), "backward")
        assert len(ids) == drawn == len(set(ids.tolist()))
        seen[ids] += 1 / 4000
        sizes.append(drawn)
    np.testing.assert_allclose(seen, np.exp(sampler.log_chance), atol=0.03)
    assert np.mean(sizes) == pytest.approx(8, abs=0.5)
    chances = [math.log((rank + 2) / (rank + 1)) / math.log(classes + 1) for rank in range(classes)]
    assert sum(chances) == pytest.approx(1)
    draws = draws_for(np.array(chances), 8)
    expected = [1 - (1 - chance) ** draws for chance in chances]
    np.testing.assert_allclose(np.exp(sampler.log_chance), expected, rtol=1e-5)
    assert sum(1 - (1 - chance) ** (draws - 1) for chance in chances) < 8 <= sum(expected)


def test_what_is_drawn_comes_first_and_depends_on_the_window_alone() -> None:
    sampler, targets = sampler_of(8, types=25), np.array([[3, 39, 3], [30, 24, 8]], dtype=np.uint32)
    ids, drawn = sampler.candidates(targets, Position(0, 1, 2), "forward")
    again, _ = sampler.candidates(targets, Position(0, 1, 2), "forward")
    np.testing.assert_array_equal(ids, again)
    assert set(ids[drawn:].tolist()) == {3, 8, 24, 25} - set(ids[:drawn].tolist()), "rarer types are class 25"
    alone, _ = sampler.candidates(targets[:0], Position(0, 1, 2), "forward")
    np.testing.assert_array_equal(ids[:drawn], alone)
    others = [
        sampler.candidates(targets, place, direction)[0].tolist()
        for place, direction in ((Position(0, 1, 3), "forward"), (Position(0, 1, 2), "backward"))
    ]
    assert ids.tolist() not in others


# the loss


def plain_losses(
    predictions: Tensor, targets: list[int], vectors: Tensor, bias: Tensor, drawn: list[int], chances: Tensor
) -> list[Tensor]:
    """The cross-entropy of each target that has a vector, among itself and the types drawn."""
    losses = []
    for prediction, target in zip(predictions, targets, strict=True):
        if not vectors[target].any():
            continue
        among = [target, *(each for each in drawn if each != target and vectors[each].any())]
        scores = torch.stack([prediction @ vectors[each] + bias[each] - chances[each].log() for each in among])
        losses.append(-scores.log_softmax(dim=0)[0])
    return losses


def layer_of(kind: str, table: Tensor) -> tuple[OutputLayer, Tensor, Tensor]:
    """A layer, and the vectors and biases of all types or classes."""
    torch.manual_seed(0)
    if kind == "fixed":
        layer = FixedOutput(PROJECTION, WIDTH).double()
        return layer, table, torch.zeros(TYPES, dtype=torch.float64)
    layer = SampledOutput(PROJECTION, 26, SampledSettings(types=25, samples=8)).double()
    with torch.no_grad():
        layer.rows[:, -1].normal_()
    return layer, layer.rows[:, :-1], layer.rows[:, -1]


@pytest.mark.parametrize("kind", ["sampled", "fixed"])
def test_loss_and_gradients_are_those_of_plain_loops(kind: str) -> None:
    generator = torch.Generator().manual_seed(3)
    table = torch.randn(TYPES, WIDTH, generator=generator, dtype=torch.float64)
    table[[1, 4, 30]] = 0
    layer, vectors, bias = layer_of(kind, table)
    sampler = sampler_of(8, types=25 if kind == "sampled" else 0)
    targets = np.array([[0, 1, 4, 7], [25, 30, 39, 7], [12, 24, 26, 38]], dtype=np.uint32)
    classes = sampler.class_of(targets)
    ids, drawn = sampler.candidates(targets, Position(0, 0, 5), "forward")
    candidates = Candidates(
        table[ids.astype(np.int64)].float() if kind == "fixed" else None,
        torch.from_numpy(sampler.log_frequency[ids]),
        torch.from_numpy(sampler.log_chance[ids]),
        torch.tensor([[ids.tolist().index(each) for each in row] for row in classes]),
        torch.from_numpy(ids.astype(np.int64)),
        drawn,
    )
    states = torch.randn(3, 4, PROJECTION, generator=generator, dtype=torch.float64, requires_grad=True)
    loss: Loss = layer(states, Targets(torch.from_numpy(targets.astype(np.int64)), None, candidates))
    predictions = layer.predict(states).double() if kind == "fixed" else states
    expected = plain_losses(
        predictions.flatten(0, 1),
        classes.ravel().tolist(),
        vectors,
        bias,
        ids[:drawn].tolist(),
        torch.from_numpy(sampler.log_chance).double().exp(),
    )
    total = torch.stack(expected).sum()
    assert loss.total.item() == pytest.approx(total.item(), rel=1e-5)
    assert (int(loss.counted), int(loss.masked)) == (len(expected), 12 - len(expected))
    assert (len(expected) < 12) == (kind == "fixed")
    leaves = [states, *layer.parameters()]
    ours, theirs = (torch.autograd.grad(each, leaves, retain_graph=True) for each in (loss.total, total))
    for one, other in zip(ours, theirs, strict=True):
        assert one.is_sparse == (kind == "sampled" and one.shape == (26, PROJECTION + 1))
        torch.testing.assert_close(one.to_dense(), other, rtol=1e-4, atol=1e-5)


def test_gradients_do_not_depend_on_the_order_of_threads() -> None:
    """Many targets of one type, whose gradients several threads could add in any order."""
    generator = torch.Generator().manual_seed(4)
    targets = 1 << 16
    predictions, rows = (torch.randn(size, 4, generator=generator) for size in (targets, 9))
    bias, shares = torch.randn(9, generator=generator), torch.zeros(9)
    candidates = Candidates(None, shares, shares, torch.randint(3, (targets,), generator=generator), torch.arange(9), 6)
    found = []
    torch.set_num_threads(4)
    for _ in range(10):
        leaves = [each.clone().requires_grad_() for each in (predictions, rows, bias)]
        sampled.sampled_loss(*leaves, candidates).total.backward()
        found.append([leaf.grad for leaf in leaves])
    torch.testing.assert_close(found, found[:1] * 10, rtol=0, atol=0)


def test_log_probabilities_are_those_of_its_vectors_and_biases() -> None:
    layer, vectors, bias = layer_of("sampled", torch.empty(0))
    assert isinstance(layer, SampledOutput)
    states = torch.randn(8, PROJECTION, dtype=torch.float64)
    expected = torch.stack([(vectors @ state + bias).log_softmax(dim=0) for state in states])
    classes = torch.tensor([0, 3, 4, 11, 12, 20, 24, 25])
    first, own = layer.scored(states, classes, 12)
    torch.testing.assert_close(first, expected[:, :12].float())
    torch.testing.assert_close(own, expected.gather(1, classes.unsqueeze(1))[:, 0].float())


@pytest.mark.parametrize("kind", ["fixed", "contrastive"])
def test_metrics_over_given_vectors_are_those_of_a_plain_program(tiny_corpus: Corpus, kind: str) -> None:
    table, counts, candidates = VectorTable(tiny_corpus, "gaps"), tiny_corpus.counts, 18
    settings: Any = FixedSettings() if kind == "fixed" else ContrastiveSettings(temperature=0.3)
    layer = settings.build(projection_size=PROJECTION, corpus=tiny_corpus, targets=table)
    if kind == "contrastive":
        torch.nn.init.constant_(layer.frequency_weight, 0.6)
    generator = np.random.default_rng(3)
    ids = generator.integers(0, tiny_corpus.types, 60).astype(np.uint32)
    predictions = generator.standard_normal((60, table.size))
    cpu = torch.device("cpu")
    scorer = settings.scorer(corpus=tiny_corpus, counts_read=counts, targets=table, candidates=candidates, device=cpu)
    with torch.no_grad():
        parts = {"": slice(None), "first": slice(0, 25)}
        scored = scorer.score(layer, torch.tensor(predictions, dtype=torch.float32), ids, parts)
    rows = table.rows.astype(np.float64)
    known = [row for row in range(candidates) if rows[row].any()]
    assert len(known) < candidates
    ranks, likelihoods, constants = [], [], []
    constant_ranks = [known.index(target) + 1 if target in known else 0 for target in ids.tolist()]
    for prediction, target in zip(predictions, ids, strict=True):
        scores = {row: prediction @ rows[row] for row in known}
        if kind == "contrastive":
            lengths = {row: np.linalg.norm(prediction) * np.linalg.norm(rows[row]) for row in known}
            frequency = np.log(counts / counts.sum())
            scores = {row: scores[row] / lengths[row] / 0.3 + 0.6 * frequency[row] for row in known}
        ranks.append(sum(score >= scores[target] for score in scores.values()) if target in scores else 0)
        if target in scores:
            likelihoods.append(scores[target] - np.log(sum(np.exp(list(scores.values())))))
            constants.append(np.log(counts[target] / counts[known].sum()))
    expected = retrieval(torch.tensor(ranks)) | retrieval(torch.tensor(constant_ranks), "constant_")
    expected |= {"perplexity": np.exp(-np.mean(likelihoods)), "constant_perplexity": np.exp(-np.mean(constants))}
    expected["cosine"] = float(scorer.cosines(torch.tensor(predictions), ids).mean())
    values = scored[""]
    assert {name: values[name] for name in expected} == pytest.approx(expected, rel=1e-4)
    assert "vocabulary_perplexity" not in values
    assert scored["first"]["reciprocal_rank"] == pytest.approx(retrieval(torch.tensor(ranks[:25]))["reciprocal_rank"])
