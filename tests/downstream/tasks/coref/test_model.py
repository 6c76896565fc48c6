"""The fast coreference model: the numbers of the plain one."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from allennlp_light.modules.feedforward import FeedForward
from allennlp_light.nn.util import bucket_values
from downstream.tasks.coref.antecedents import AntecedentScorer, antecedent_loss
from downstream.tasks.coref.model import chains_of_links, like_length
from downstream.tasks.coref.spans import CorefSettings, PartwiseFeedForward, Spans, SpanScorer, keep_best
from downstream.tasks.coref.task import TASK
from torch import Tensor

LENGTHS = [4, 1, 7, 3]
"""Of the sentences of a document."""

SPANS = [
    (start + first, start + last)
    for start, length in zip(np.cumsum([0, *LENGTHS]), LENGTHS, strict=False)
    for first in range(length)
    for last in range(first, min(first + 5, length))
]
"""Its spans of up to five words."""


def plain_feed_forward(net: PartwiseFeedForward, x: Tensor) -> Tensor:
    """allennlp-light's feed-forward net with the same weights: [S, sum of the sizes] → [S]."""
    linears = [net.first, *(module for module in net.rest.modules() if isinstance(module, torch.nn.Linear))]
    sizes = [linear.out_features for linear in linears]
    activations = [torch.nn.ReLU() for _ in sizes[1:]] + [torch.nn.Identity()]
    plain = FeedForward(net.first.in_features, len(sizes), sizes, activations).to(x.dtype)  # type: ignore[arg-type]
    for module, linear in zip(plain._linear_layers, linears, strict=True):
        module.weight, module.bias = linear.weight, linear.bias
    return plain(x).squeeze(-1)


def plain_spans(scorer: SpanScorer, encoded: Tensor, heads: Tensor) -> tuple[Tensor, Tensor]:
    """All representations [S, G] and mention scores [S], each span by itself."""
    rows = []
    for start, end in SPANS:
        weights = scorer.attention(encoded[start : end + 1]).softmax(dim=0)  # [w, 1]
        head = (weights * heads[start : end + 1]).sum(dim=0)
        rows.append(torch.cat([encoded[start], encoded[end], head, scorer.widths.weight[end - start]]))
    spans = torch.stack(rows)
    return spans, plain_feed_forward(scorer.score, spans)


def settings_of(**changes: float) -> CorefSettings:
    settings = replace(TASK.published, feed_forward_layers=2, **changes)
    assert isinstance(settings, CorefSettings)
    return settings


def span_scorer(dropout: float = 0.0) -> tuple[SpanScorer, Tensor, Tensor, Tensor]:
    """A scorer in float64, and encoded words, heads and room for it."""
    torch.manual_seed(0)
    settings = settings_of(span_width=5, feature_size=3, feed_forward_size=8, dropout=dropout)
    scorer = SpanScorer(encoded_size=6, head_size=5, settings=settings).double()
    encoded, heads = (torch.randn(sum(LENGTHS), size, dtype=torch.float64, requires_grad=True) for size in (6, 5))
    room = torch.cat([torch.arange(length, 0, -1) for length in LENGTHS])
    return scorer, encoded, heads, room


def gradients(loss: Tensor, *inputs: Tensor, module: torch.nn.Module) -> list[Tensor]:
    return list(torch.autograd.grad(loss, [*inputs, *module.parameters()], materialize_grads=True))


def test_mention_scores_are_those_of_every_span_by_itself() -> None:
    scorer, encoded, heads, room = span_scorer()
    with torch.no_grad():
        scorer.attention.weight.mul_(30)  # shares of the attention from 1 down to e⁻¹⁰⁰
    spans = scorer.candidates(encoded, heads, scorer.attention(encoded).squeeze(1), scorer.widths.weight, room)
    found = list(zip(spans.starts.tolist(), spans.ends.tolist(), strict=True))
    assert sorted(found) == sorted(SPANS), "no span goes over the end of its sentence"
    order = torch.tensor([found.index(span) for span in SPANS])
    kept, represented = scorer(encoded, heads, room, len(SPANS))
    rows = [SPANS.index(span) for span in zip(kept.starts.tolist(), kept.ends.tolist(), strict=True)]
    assert len(rows) > sum(LENGTHS)
    weights, more = torch.randn(len(SPANS), dtype=torch.float64), torch.randn(len(rows), 20, dtype=torch.float64)
    every, scores = plain_spans(scorer, encoded, heads)
    plain = every[rows]
    torch.testing.assert_close(spans.scores[order], scores)
    torch.testing.assert_close(kept.scores, scores[rows])
    torch.testing.assert_close(represented, plain)
    torch.testing.assert_close(
        gradients((spans.scores[order] * weights).sum() + (represented * more).sum(), encoded, heads, module=scorer),
        gradients((scores * weights).sum() + (plain * more).sum(), encoded, heads, module=scorer),
    )


def crossing(one: tuple[int, int], other: tuple[int, int]) -> bool:
    (a, b), (c, d) = sorted([one, other])
    return a < c <= b < d


def test_the_best_spans_that_do_not_cross_are_kept() -> None:
    generator = torch.Generator().manual_seed(0)
    for count in (1, 5, 12, 100):
        scores = torch.randn(len(SPANS), generator=generator)
        kept: list[tuple[int, int]] = []
        for _, span in sorted(zip(scores.tolist(), SPANS, strict=True), reverse=True):
            if len(kept) < count and not any(crossing(span, other) for other in kept):
                kept.append(span)
        best = keep_best(Spans(*torch.tensor(SPANS).T, scores), count)
        found = list(zip(best.starts.tolist(), best.ends.tolist(), strict=True))
        assert found == sorted(kept)
        assert len(found) == count or count == 100


def antecedent_scorer(dropout: float = 0.0, **changes: int) -> AntecedentScorer:
    torch.manual_seed(1)
    sizes = {"antecedents": 3, "depth": 2, "feature_size": 4, "feed_forward_size": 6}
    settings = settings_of(**(sizes | changes), dropout=dropout)
    return AntecedentScorer(span_size=7, speakers=True, genres=2, settings=settings).double()


def plain_antecedents(
    scorer: AntecedentScorer, spans: Tensor, mentions: Tensor, speakers: list[int], genre: int, depth: int
) -> tuple[list[list[int]], list[Tensor]]:
    """For each span its antecedents, best first, and its scores, "none" before them; pair by pair."""
    bilinear = [
        [scorer.bilinear(one) @ other / 7**0.5 + m + n for other, n in zip(spans, mentions, strict=True)]
        for one, m in zip(spans, mentions, strict=True)
    ]
    antecedents = [
        sorted(range(place), key=lambda other: -bilinear[place][other].item())[:3] for place in range(len(spans))
    ]
    distances, same, genres = (table.weight for table in scorer.features.values())
    for layer in range(depth):
        scores = []
        for place, others in enumerate(antecedents):
            row = [spans.new_zeros(())]
            for other in others:
                pair = torch.cat(
                    [
                        *(spans[place], spans[other], spans[place] * spans[other]),
                        distances[int(bucket_values(torch.tensor(place - other)))],
                        same[int(speakers[place] == speakers[other])],
                        genres[genre],
                    ]
                )
                row.append(bilinear[place][other] + plain_feed_forward(scorer.score, pair))
            scores.append(torch.stack(row))
        if layer + 1 < depth:
            expected = torch.stack(
                [
                    sum((share * spans[one] for share, one in zip(row.softmax(0), [place, *others], strict=True)))
                    for place, (row, others) in enumerate(zip(scores, antecedents, strict=True))
                ]
            )
            share = scorer.gate(torch.cat([spans, expected], dim=1)).sigmoid()
            spans = share * expected + (1 - share) * spans
    return antecedents, scores


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_antecedents_are_those_of_pairs_by_themselves(depth: int) -> None:
    scorer = antecedent_scorer(depth=depth)
    spans = torch.randn(9, 7, dtype=torch.float64, requires_grad=True)
    mentions = torch.randn(9, dtype=torch.float64, requires_grad=True)
    speakers = [0, 1, 1, 0, 2, 0, 1, 0, 0]
    found, found_scores = scorer(spans, mentions, torch.tensor(speakers), 2)
    antecedents, scores = plain_antecedents(scorer, spans, mentions, speakers, 2, depth)
    for place, row in enumerate(antecedents):
        assert found[place, : len(row)].tolist() == row
        torch.testing.assert_close(found_scores[place, : 1 + len(row)], scores[place])
        assert (found_scores[place, 1 + len(row) :] == -torch.inf).all()
    clusters = [0, -1, 0, 1, 0, 1, -1, -1, 1]
    losses = []
    for place, row in enumerate(antecedents):
        right = [1 + column for column, other in enumerate(row) if clusters[place] == clusters[other] >= 0]
        losses.append(-scores[place].softmax(dim=0)[right or [0]].sum().log())
    loss, plain = antecedent_loss(found, found_scores, torch.tensor(clusters)), torch.stack(losses).sum()
    torch.testing.assert_close(loss, plain)
    torch.testing.assert_close(
        gradients(loss, spans, mentions, module=scorer), gradients(plain, spans, mentions, module=scorer)
    )


def test_unknown_genres_and_single_spans() -> None:
    scorer = antecedent_scorer()
    one, scores = scorer(torch.randn(1, 7, dtype=torch.float64), torch.zeros(1).double(), torch.tensor([0]), 0)
    assert scores.tolist() == [[0, -torch.inf]]
    assert antecedent_loss(one, scores, torch.tensor([3])).item() == 0, (
        "a mention whose antecedents are lost begins a chain"
    )


def test_links_make_chains() -> None:
    mentions = [(place, place) for place in range(7)]
    assert chains_of_links(mentions, [-1, -1, 0, 1, 2, -1, 3]) == [[(0, 0), (2, 2), (4, 4)], [(1, 1), (3, 3), (6, 6)]]


def test_sentences_of_like_length() -> None:
    assert like_length([5, 1, 30, 2, 10, 11, 3, 22]) == [[1, 3], [6, 0], [4, 5], [7, 2]]
    assert like_length([4]) == [[0]]
