"""Spans of a document: their representations, and which of them are likely to be
mentions.

Lee et al. (2017, 2018): every span of up to W words of a sentence is a candidate; it is
represented by its first and last encoded words, an attention over its words (its head)
and its width, and scored by a feed-forward net. Only the best spans, none crossing
another, are carried on.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from downstream.tasks.coref.layers import CorefSettings, PartwiseFeedForward

# The parts of a span's representation, in their order.
START, END, HEAD, WIDTH = range(4)


@dataclass(frozen=True)
class SpanParts:
    """What the spans of a document of N words are made of.

    encoded: [N, E], the words as the LSTM sees them.
    heads: [N, D], the inputs that the head attention averages.
    attention: [N], scores of the head attention, before the softmax over a span.
    widths: [W, F], features of the widths 1 … W.
    """

    encoded: Tensor
    heads: Tensor
    attention: Tensor
    widths: Tensor


@dataclass(frozen=True)
class Spans:
    """Spans by their words, with their scores.

    starts: int64 [S], first words.
    ends: int64 [S], last words.
    scores: [S], of mentions.
    """

    starts: Tensor
    ends: Tensor
    scores: Tensor


class SpanScorer(torch.nn.Module):
    """Span representations g = [start; end; head; width] and mention scores s(g).

    Candidates are not represented: the first layer of the scorer's net is computed
    width by width from projections of the words, so that for all spans only its hidden
    units are kept ([S, H], 40 MB for 70,000 spans).

    Args:
        encoded_size: E, of the encoded words.
        head_size: D, of the inputs that the head attention averages.
        settings: `span_width` is W, `feature_size` F. Their dropout in the scorers is
            also used on the width embeddings, one mask for all the spans of a document.
    """

    def __init__(
        self, *, encoded_size: int, head_size: int, settings: CorefSettings
    ) -> None:
        super().__init__()
        self.attention = torch.nn.Linear(encoded_size, 1)
        self.widths = torch.nn.Embedding(settings.span_width, settings.feature_size)
        self.dropout = torch.nn.Dropout(settings.dropout)
        sizes = [encoded_size, encoded_size, head_size, settings.feature_size]
        self.score = PartwiseFeedForward(sizes=sizes, settings=settings)
        self.output_size = sum(sizes)

    def parts(self, encoded: Tensor, heads: Tensor) -> SpanParts:
        """Encoded words [N, E] and what the head attention gathers [N, D] → what spans
        are made of.
        """
        attention = self.attention(encoded).squeeze(1)
        widths = self.dropout(self.widths.weight)
        return SpanParts(encoded, heads, attention, widths)

    def candidates(self, parts: SpanParts, room: Tensor) -> Spans:
        """All spans of up to W words inside sentences, narrow ones first.

        The head attention of a span of w words comes from the span of w − 1: the new
        word's share of the softmax is σ(a_new − log Σ exp a_old), and the new head is
        that much of the way from the old head to the new word.

        Args:
            parts: of the words.
            room: int64 [N], how many words there are from each word to the end of its
                sentence, both counted.
        """
        words = len(room)
        start = self.score.project(START, parts.encoded)  # [N, H]
        end = self.score.project(END, parts.encoded)  # [N, H]
        value = self.score.project(HEAD, parts.heads)  # [N, H]
        width = self.score.project(WIDTH, parts.widths)  # [W, H]
        head = value
        total = parts.attention
        sums = []
        starts = []
        ends = []
        for extra in range(min(len(parts.widths), int(room.max()))):
            count = words - extra
            if extra:
                old = total[:count]
                new = parts.attention[extra:]
                share = (new - old).sigmoid().unsqueeze(1)
                head = torch.lerp(head[:count], value[extra:], share)
                total = torch.logaddexp(old, new)
            hidden = start[:count] + end[extra:] + head + width[extra]  # [count, H]
            # Spans do not reach into the next sentence.
            inside = torch.nonzero(room[:count] > extra).squeeze(1)
            sums.append(hidden.index_select(0, inside))
            starts.append(inside)
            ends.append(inside + extra)
        scores = self.score.finish(torch.cat(sums))
        return Spans(torch.cat(starts), torch.cat(ends), scores)

    def represent(self, parts: SpanParts, spans: Spans) -> Tensor:
        """[K, G]: the representations of some spans."""
        places = torch.arange(len(parts.attention), device=parts.attention.device)
        begun = places >= spans.starts.unsqueeze(1)  # [K, N]
        inside = begun & (places <= spans.ends.unsqueeze(1))
        scores = parts.attention.expand_as(inside)
        weights = scores.masked_fill(~inside, -torch.inf).softmax(dim=1)
        start = parts.encoded[spans.starts]
        end = parts.encoded[spans.ends]
        # Row 0 is for spans of one word.
        widths = parts.widths[spans.ends - spans.starts]
        return torch.cat([start, end, weights @ parts.heads, widths], dim=1)


def keep_best(spans: Spans, count: int) -> Spans:
    """Up to `count` spans, best first taken, none crossing one taken before; in textual
    order.

    Two spans cross when each has a word that the other has not, and they have a word in
    common.
    """
    # One span after the other is compared: numpy's steps are faster than PyTorch's.
    starts = spans.starts.cpu().numpy()
    ends = spans.ends.cpu().numpy()
    words = int(ends.max()) + 1
    # Of the spans taken that begin at each word the latest end, and of those that end
    # there the earliest start: no search through the spans taken is needed.
    latest_end = np.full(words, -1)
    earliest_start = np.full(words, words)
    kept: list[int] = []
    for number in np.argsort(-spans.scores.detach().cpu().numpy(), kind="stable"):
        if len(kept) == count:
            break
        start = starts[number]
        end = ends[number]
        begins_inside = (latest_end[start + 1 : end + 1] > end).any()
        ends_inside = (earliest_start[start:end] < start).any()
        if not begins_inside and not ends_inside:
            kept.append(number)
            latest_end[start] = max(latest_end[start], end)
            earliest_start[end] = min(earliest_start[end], start)
    kept.sort(key=lambda number: (starts[number], ends[number]))
    return Spans(spans.starts[kept], spans.ends[kept], spans.scores[kept])
