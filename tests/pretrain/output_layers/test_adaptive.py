"""Adaptive softmax: values and gradients of a plain twin, `<unk>`, metrics, and whole runs with a shared layer."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.word_vectors.table import VectorTable
from pretrain.output_layers.adaptive import AdaptiveOutput, AdaptiveSettings
from pretrain.output_layers.retrieval import retrieval
from pretrain.output_layers.softmax import SoftmaxScorer
from torch import Tensor

from pretrain.output_layers import Targets, class_counts

PROJECTION, TYPES = 8, 20
ADAPTIVE: dict[str, Any] = {
    "output_layer__kind": "adaptive",
    "output_layer__types": 15,
    "output_layer__cutoffs": [4, 9],
    "output_layer__reduction": 2,
    "data__target_vectors": "none at all",
    "log__checkpoint_updates": 6,
}


def layer_of(types: int = TYPES, lexicon: int = 30, reduction: float = 2.0) -> AdaptiveOutput:
    torch.manual_seed(0)
    return AdaptiveOutput(PROJECTION, types + (types < lexicon), [5, 12], reduction).double()


def plain_log_probability(layer: AdaptiveOutput, state: Tensor, target: int) -> Tensor:
    """Grave et al. (2017), Section 4.3: of the head, or of the cluster in the head and of the word in the cluster."""
    head = (layer.softmax.head.weight @ state).log_softmax(dim=0)  # the first types, then the clusters
    bounds = [*layer.softmax.cutoffs]
    if target < bounds[0]:
        return head[target]
    (cluster,) = [index for index in range(len(bounds) - 1) if bounds[index] <= target < bounds[index + 1]]
    narrow, wide = layer.softmax.tail[cluster]
    within = (wide.weight @ (narrow.weight @ state)).log_softmax(dim=0)
    return head[bounds[0] + cluster] + within[target - bounds[cluster]]


@pytest.mark.parametrize("ids", [[[0, 4, 5, 11], [12, 19, 20, 29]], [[1, 2, 3, 4]], [[25, 29, 20, 26]]])
def test_loss_and_gradients_are_those_of_a_plain_twin(ids: list[list[int]]) -> None:
    layer = layer_of()
    targets = torch.tensor(ids)
    states = torch.randn(*targets.shape, PROJECTION, dtype=torch.float64, requires_grad=True)
    loss = layer(states, Targets(targets, None))
    expected = -sum(
        plain_log_probability(layer, state, min(int(target), TYPES))
        for state, target in zip(states.view(-1, PROJECTION), targets.flatten(), strict=True)
    )
    torch.testing.assert_close(loss.total, expected.float(), check_dtype=False)
    assert (int(loss.counted), int(loss.masked)) == (targets.numel(), 0)
    leaves = [states, *layer.parameters()]
    gradients = [torch.autograd.grad(each, leaves, allow_unused=True) for each in (loss.total, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("candidates", [3, 5, 6, 10, 12, 13, 17, TYPES + 1])
def test_metrics_are_those_of_a_plain_program(candidates: int) -> None:
    generator = np.random.default_rng(0)
    counts = np.sort(generator.integers(1, 100, 30))[::-1].copy()
    ids = generator.integers(0, 30, 50).astype(np.uint32)
    states = torch.randn(50, PROJECTION)
    layer = layer_of().float()
    with torch.no_grad():
        scorer = SoftmaxScorer(class_counts(counts, TYPES), candidates=candidates)
        metrics = scorer.score(layer, states, ids, {"": slice(None), "first": slice(0, 20)})
        rows = layer.softmax.log_prob(states).double().numpy()
    unigrams = np.log([*counts[:TYPES] / counts.sum(), counts[TYPES:].sum() / counts.sum()])
    ranks, among, overall, constant_among, constant_overall = [], [], [], [], []
    for row, target in zip(rows, ids, strict=True):
        overall.append(row[min(target, TYPES)])
        constant_overall.append(unigrams[min(target, TYPES)])
        ranks.append(sum(row[:candidates] >= row[target]) if target < candidates else 0)
        if target < candidates:
            among.append(row[target] - np.log(np.exp(row[:candidates]).sum()))
            constant_among.append(unigrams[target] - np.log(np.exp(unigrams[:candidates]).sum()))
    values = metrics[""]
    expected = {
        **retrieval(torch.tensor(ranks)),
        "perplexity": math.exp(-np.mean(among)),
        "vocabulary_perplexity": math.exp(-np.mean(overall)),
        "constant_perplexity": math.exp(-np.mean(constant_among)),
        "constant_vocabulary_perplexity": math.exp(-np.mean(constant_overall)),
        "constant_accuracy_at_10": np.mean(ids < min(10, candidates)),
    }
    for name, value in expected.items():
        assert values[name] == pytest.approx(value, rel=1e-5), name
    assert metrics["first"]["reciprocal_rank"] == pytest.approx(retrieval(torch.tensor(ranks[:20]))["reciprocal_rank"])


def test_autocast_has_products_in_bf16_and_sums_in_float32() -> None:
    layer = layer_of().float()
    states, targets = torch.randn(1, 4, PROJECTION), Targets(torch.tensor([[0, 4, 12, 20]]), None)
    exact = layer(states, targets).total
    with torch.autocast("cpu", torch.bfloat16):
        rounded = layer(states, targets).total
    assert rounded != exact
    torch.testing.assert_close(rounded, exact, rtol=0.01, atol=0)


@pytest.mark.parametrize("cutoffs", [(), (0, 4), (9, 4), (60,)])
def test_impossible_clusters_are_refused(tiny_corpus: Corpus, cutoffs: tuple[int, ...]) -> None:
    table = VectorTable(tiny_corpus, "raw")
    with pytest.raises(InputError, match=r"output_layer\.cutoffs"):
        AdaptiveSettings(cutoffs=cutoffs).build(projection_size=8, corpus=tiny_corpus, targets=table)
    with pytest.raises(InputError, match=r"output_layer\.reduction"):
        AdaptiveSettings(cutoffs=(4, 9), reduction=9).build(projection_size=8, corpus=tiny_corpus, targets=table)
