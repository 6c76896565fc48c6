"""Full softmax: values and gradients of a plain twin, and projection regularisation."""

import numpy as np
import pytest
import torch
from elmoc.corpus import Corpus
from elmoc.word_vectors.table import VectorTable
from pretrain.output_layers.full_softmax import FullSoftmaxOutput, FullSoftmaxSettings
from torch import Tensor

from pretrain.output_layers import Targets

PROJECTION, TYPES = 6, 9


def layer_of(settings: FullSoftmaxSettings, types: int = TYPES, lexicon: int = 12) -> FullSoftmaxOutput:
    torch.manual_seed(0)
    layer = FullSoftmaxOutput(PROJECTION, types + (types < lexicon), settings).double()
    torch.nn.init.normal_(layer.bias)
    if layer.projection is not None:
        torch.nn.init.normal_(layer.projection)
    return layer


def plain_loss(layer: FullSoftmaxOutput, states: Tensor, ids: Tensor, of_norm: float, of_squares: float) -> Tensor:
    """− log softmax(V P h + b), word by word, and for each λ‖P‖₂ (Press and Wolf 2017, Section 3) and ½w‖P‖²."""
    total = states.new_zeros(())
    for state, target in zip(states.view(-1, PROJECTION), ids.flatten().tolist(), strict=True):
        if layer.projection is not None:
            state = layer.projection @ state
            total = total + of_norm * layer.projection.norm() + of_squares / 2 * (layer.projection**2).sum()
        scores = torch.stack([row @ state + bias for row, bias in zip(layer.rows, layer.bias, strict=True)])
        total = total + scores.exp().sum().log() - scores[min(target, TYPES)]
    return total


@pytest.mark.parametrize(("of_norm", "of_squares"), [(0.0, 0.0), (0.15, 0.0), (0.0, 0.2), (0.15, 0.2)])
@pytest.mark.parametrize("ids", [[[0, 4], [8, 11], [9, 3]], [[1]]])
def test_loss_and_gradients_are_those_of_a_plain_twin(ids: list[list[int]], of_norm: float, of_squares: float) -> None:
    layer = layer_of(FullSoftmaxSettings(TYPES, projection_regularisation=of_norm, projection_weight_decay=of_squares))
    targets = torch.tensor(ids)
    states = torch.randn(*targets.shape, PROJECTION, dtype=torch.float64, requires_grad=True)
    loss = layer(states, Targets(targets, None))
    expected = plain_loss(layer, states, targets, of_norm, of_squares)
    torch.testing.assert_close(loss.total, expected, check_dtype=False, rtol=1e-5, atol=1e-5)
    assert (int(loss.counted), int(loss.masked)) == (targets.numel(), 0)
    leaves = [states, *layer.parameters()]
    assert len(leaves) == 3 + (of_norm + of_squares > 0)
    for ours, theirs in zip(*(torch.autograd.grad(each, leaves) for each in (loss.total, expected)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_its_log_probabilities_are_those_of_its_loss() -> None:
    layer = layer_of(FullSoftmaxSettings(types=TYPES))
    ids = torch.tensor([[0, 4, 8], [11, 9, 3]])
    states = torch.randn(2, 3, PROJECTION, dtype=torch.float64)
    classes = ids.flatten().clamp(max=TYPES)
    first, own = (each.detach() for each in layer.scored(states.flatten(0, 1), classes, 5))
    assert layer(states, Targets(ids, None)).total.item() == pytest.approx(-own.sum().item(), rel=1e-5)
    assert first.shape == (6, 5)
    inside = classes < 5
    torch.testing.assert_close(first[inside].gather(1, classes[inside].unsqueeze(1))[:, 0], own[inside])


@pytest.mark.parametrize(("types", "candidates"), [(9, 9), (9, 10), (9, 1000), (0, 1000)])
def test_a_perplexity_among_fewer_candidates_than_asked_for_is_left_out(
    tiny_corpus: Corpus, types: int, candidates: int
) -> None:
    settings = FullSoftmaxSettings(types=types)
    table, device = VectorTable(tiny_corpus, "raw"), torch.device("cpu")
    layer = settings.build(projection_size=PROJECTION, corpus=tiny_corpus, targets=table)
    scorer = settings.scorer(
        corpus=tiny_corpus, counts_read=tiny_corpus.counts, targets=table, candidates=candidates, device=device
    )
    ids = np.array([0, 1, 2], dtype=np.uint32)
    with torch.no_grad():
        values = scorer.score(layer, torch.randn(3, PROJECTION), ids, {"": slice(None)})[""]
    compares = types == 0 or candidates <= types
    assert ("perplexity" in values) == ("constant_perplexity" in values) == compares
    assert "vocabulary_perplexity" in values
