"""Spans of a document: their representations, and which of them are likely to be
mentions.

Lee et al. (2017, 2018): every span of up to W words of a sentence is a candidate; it is
represented by its first and last encoded words, an attention over its words (its head)
and its width, and scored by a feed-forward net. Only the best spans, none crossing
another, are carried on.

The settings of the model and the feed-forward net of both its scorers are here, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from allennlp_light.modules.feedforward import FeedForward
from msgspec import Meta
from torch import Tensor
from torch.nn.functional import embedding

from downstream.settings import (
    MOST_UNITS,
    Dropout,
    Size,
    TrainingSettings,
)

# The parts of a span's representation, in their order.
START, END, HEAD, WIDTH = range(4)


@dataclass(frozen=True, kw_only=True)
class CorefSettings(TrainingSettings):
    """Hyper-parameters of the coreference probe."""

    hidden_size: Annotated[
        Size, Meta(description="units of the LSTM, each direction")
    ] = 200
    layers: Annotated[int, Meta(ge=1, le=100, description="layers of the LSTM")] = 3
    head_size: Annotated[
        int,
        Meta(
            ge=0,
            le=MOST_UNITS,
            description="project the inputs to this size for the head attention (0: "
            "it reads word vectors at unit length, as the LSTM does)",
        ),
    ] = 0
    coupled: Annotated[
        bool,
        Meta(
            description="LSTM cells with one gate for input and forgetting, dropout on "
            "the recurrent state and learned first states"
        ),
    ] = True
    span_width: Annotated[
        int, Meta(ge=1, le=10_000, description="most words of a span")
    ] = 30
    span_ratio: Annotated[
        float, Meta(ge=0, le=10_000, description="spans kept, a word of the document")
    ] = 0.4
    antecedents: Annotated[
        Size, Meta(description="antecedents of a span that are scored in full")
    ] = 50
    depth: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="how often antecedents are scored: representations are "
            "refined in between",
        ),
    ] = 2
    feed_forward_size: Annotated[
        Size, Meta(description="units of each layer of the scorers")
    ] = 150
    feed_forward_layers: Annotated[
        int, Meta(ge=1, le=100, description="hidden layers of the scorers")
    ] = 2
    feature_size: Annotated[
        Size,
        Meta(
            description="size of the embeddings of width, distance, speaker and genre"
        ),
    ] = 20
    training_sentences: Annotated[
        Size,
        Meta(
            description="train longer documents on random windows of this number of "
            "sentences"
        ),
    ] = 50
    lexical_dropout: Annotated[Dropout, Meta(description="dropout on the inputs")] = 0.5
    lstm_dropout: Annotated[
        Dropout, Meta(description="dropout on what each layer of the LSTM gives")
    ] = 0.4
    dropout: Annotated[Dropout, Meta(description="dropout in the scorers")] = 0.2


class PartwiseFeedForward(torch.nn.Module):
    """A feed-forward net with one output over a concatenation that is never made.

    The first layer is linear: its output is the sum of the products of its columns with
    the parts. A part that many concatenations share is multiplied once: `project` each
    part, add, and `finish`.

    Args:
        sizes: of the parts, in the order of the concatenation.
        settings: `feed_forward_layers` hidden layers of `feed_forward_size` units with
            ReLU, each followed by dropout.
    """

    def __init__(self, *, sizes: Sequence[int], settings: CorefSettings) -> None:
        super().__init__()
        hidden = settings.feed_forward_layers - 1
        self._sizes = list(sizes)
        self.first = torch.nn.Linear(sum(sizes), settings.feed_forward_size)
        # What follows the first layer, which is linear alone.
        self.rest = torch.nn.Sequential(
            torch.nn.ReLU(),
            torch.nn.Dropout(settings.dropout),
            FeedForward(
                settings.feed_forward_size,
                hidden + 1,
                [settings.feed_forward_size] * hidden + [1],
                [torch.nn.ReLU()] * hidden + [torch.nn.Identity()],
                [settings.dropout] * hidden + [0.0],
            ),
        )

    def project(self, part: int, x: Tensor) -> Tensor:
        """[..., size of the part] → [..., H]; part 0 has the bias of the layer."""
        # The columns of the weight that belong to the part.
        weight = self.first.weight.split(self._sizes, dim=1)[part]
        bias = self.first.bias if part == 0 else None
        return torch.nn.functional.linear(x, weight, bias)

    def finish(self, x: Tensor) -> Tensor:
        """The sum of the projected parts [..., H] → the output [...]."""
        return self.rest(x).squeeze(-1)


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

    def forward(
        self, encoded: Tensor, heads: Tensor, room: Tensor, count: int
    ) -> tuple[Spans, Tensor]:
        """The best spans of a document in textual order, and their representations,
        [K, G].

        Args:
            encoded: [N, E], the words as the LSTM sees them.
            heads: [N, D], the inputs that the head attention averages.
            room: int64 [N], how many words there are from each word to the end of its
                sentence, both counted.
            count: the largest K.
        """
        # Scores of the head attention, before the softmax over a span: [N].
        attention = self.attention(encoded).squeeze(1)
        # Features of the widths 1 … W: [W, F].
        widths = self.dropout(self.widths.weight)
        candidates = self.candidates(encoded, heads, attention, widths, room)
        spans = keep_best(candidates, count)
        places = torch.arange(len(attention), device=attention.device)
        begun = places >= spans.starts.unsqueeze(1)  # [K, N]
        inside = begun & (places <= spans.ends.unsqueeze(1))
        scores = attention.expand_as(inside)
        shares = scores.masked_fill(~inside, -torch.inf).softmax(dim=1)
        # Gradients of an index by `[]` are added in another order each time.
        parts = [
            embedding(spans.starts, encoded),
            embedding(spans.ends, encoded),
            shares @ heads,
            embedding(spans.ends - spans.starts, widths),
        ]
        return spans, torch.cat(parts, dim=1)

    def candidates(
        self,
        encoded: Tensor,
        heads: Tensor,
        attention: Tensor,
        widths: Tensor,
        room: Tensor,
    ) -> Spans:
        """All spans of up to W words inside sentences, narrow ones first.

        The head attention of a span of w words comes from the span of w − 1: the new
        word's share of the softmax is σ(a_new − log Σ exp a_old), and the new head is
        that much of the way from the old head to the new word.

        Args are those of `forward`, `attention` [N] and `widths` [W, F] between them.
        """
        start = self.score.project(START, encoded)  # [N, H]
        end = self.score.project(END, encoded)  # [N, H]
        value = self.score.project(HEAD, heads)  # [N, H]
        width = self.score.project(WIDTH, widths)  # [W, H]
        head = value
        total = attention
        sums = []
        starts = []
        ends = []
        for extra in range(min(len(widths), int(room.max()))):
            count = len(room) - extra
            if extra:
                old = total[:count]
                new = attention[extra:]
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
