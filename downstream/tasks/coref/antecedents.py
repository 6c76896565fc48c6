"""Antecedents: the earlier span that each span refers back to.

Lee et al. (2018): a bilinear form picks the C likeliest antecedents of every span, a
feed-forward net scores those, and each span's representation is moved towards its
expected antecedent's before they are scored again.
"""

import math

import torch
from allennlp_light.nn.util import bucket_values
from torch import Tensor
from torch.nn.functional import embedding, pad

from downstream.tasks.coref.spans import CorefSettings, PartwiseFeedForward

# Distances in spans fall into the buckets 0, 1, 2, 3, 4, 5–7, 8–15, 16–31, 32–63, 64
# and more (`bucket_values`).
DISTANCES = 10

# The parts of the representation of a pair, in their order; from the last on, one for
# each feature.
SPAN, ANTECEDENT, PRODUCT, FEATURES = range(4)


class AntecedentScorer(torch.nn.Module):
    """Coarse-to-fine scores of antecedents, with higher-order inference.

    The bilinear form, a sum of G² terms, is divided by √G: the model is the same, but
    one update by Adam changes its scores less.

    Args:
        span_size: G, of span representations.
        speakers: whether pairs have a feature "same speaker".
        genres: the number of genres, 0 for no such feature.
        settings: `antecedents` is C. Their dropout in the scorers is also used on the
            features' embeddings (one mask for all the pairs of a document) and on both
            sides of the bilinear form.
    """

    def __init__(
        self, *, span_size: int, speakers: bool, genres: int, settings: CorefSettings
    ) -> None:
        super().__init__()
        self._settings = settings
        self._scale = math.sqrt(span_size)
        self.dropout = torch.nn.Dropout(settings.dropout)
        self.bilinear = torch.nn.Linear(span_size, span_size)
        # Spans that are scored once are not refined.
        if settings.depth > 1:
            self.gate = torch.nn.Linear(2 * span_size, span_size)
        # The first row of genres is for an unknown one.
        rows = {"distance": DISTANCES, "speaker": 2 * speakers, "genre": 1 + genres}
        self.features = torch.nn.ModuleDict(
            {
                name: torch.nn.Embedding(number, settings.feature_size)
                for name, number in rows.items()
                # A feature of one value tells nothing.
                if number > 1
            }
        )
        sizes = [span_size] * 3 + [settings.feature_size] * len(self.features)
        self.score = PartwiseFeedForward(sizes=sizes, settings=settings)

    def forward(
        self, spans: Tensor, mention_scores: Tensor, speakers: Tensor, genre: int
    ) -> tuple[Tensor, Tensor]:
        """The antecedents of K spans in textual order, and their scores.

        Antecedents are numbers of earlier spans, int64 [K, C], arbitrary where a span
        has fewer than C. Scores, [K, 1 + C], are 0 for "no antecedent", then one for
        each; −∞ where a span has fewer than C.

        Args:
            spans: [K, G].
            mention_scores: [K].
            speakers: int64 [K], equal numbers for the same speaker.
            genre: number of the document's genre, 0 for an unknown one.
        """
        antecedents, coarse = self.prune(spans, mention_scores)
        features = self._feature_sums(antecedents, speakers, genre)
        scores = self._scores(spans, antecedents, coarse, features)
        for _ in range(self._settings.depth - 1):
            spans = self.refine(spans, antecedents, scores)
            scores = self._scores(spans, antecedents, coarse, features)
        return antecedents, scores

    def prune(self, spans: Tensor, mention_scores: Tensor) -> tuple[Tensor, Tensor]:
        """The likeliest antecedents, int64 [K, C], and their coarse scores, [K, C]: −∞
        where there are fewer.
        """
        left = self.dropout(self.bilinear(spans))
        scores = left @ self.dropout(spans).T / self._scale  # [K, K]
        scores = scores + mention_scores.unsqueeze(1) + mention_scores
        # Earlier spans alone.
        later = torch.ones_like(scores, dtype=torch.bool).triu()
        scores = scores.masked_fill(later, -torch.inf)
        best, antecedents = scores.topk(
            min(self._settings.antecedents, len(spans)), dim=1
        )
        return antecedents, best

    def refine(self, spans: Tensor, antecedents: Tensor, scores: Tensor) -> Tensor:
        """Representations [K, G], moved towards the expected antecedent as far as a
        gate allows.

        A span without antecedent is its own: equations 4 to 6 of the paper.
        """
        shares = scores.softmax(dim=1)  # [K, 1 + C]
        # One product with the K × K shares is faster than K gathered antecedents.
        none = shares.new_zeros(len(spans), len(spans))
        whole = none.scatter(1, antecedents, shares[:, 1:])  # [K, K]
        expected = whole @ spans + shares[:, :1] * spans
        gate = self.gate(torch.cat([spans, expected], dim=1)).sigmoid()
        return torch.lerp(spans, expected, gate)

    def _scores(
        self, spans: Tensor, antecedents: Tensor, coarse: Tensor, features: Tensor
    ) -> Tensor:
        """[K, 1 + C]: coarse scores plus those of the feed-forward net."""
        # Spans are multiplied before they are gathered: each is part of many pairs.
        span = self.score.project(SPAN, spans).unsqueeze(1)  # [K, 1, H]
        antecedent = self.score.project(ANTECEDENT, spans)  # [K, H]
        products = spans.unsqueeze(1) * embedding(antecedents, spans)  # [K, C, G]
        parts = span + embedding(antecedents, antecedent) + features  # [K, C, H]
        fine = self.score.finish(parts + self.score.project(PRODUCT, products))
        # "No antecedent" scores 0.
        return pad(coarse + fine, (1, 0))

    def _feature_sums(
        self, antecedents: Tensor, speakers: Tensor, genre: int
    ) -> Tensor:
        """[K, C, H]: the features of pairs, projected by the first layer of the net."""
        places = torch.arange(len(antecedents), device=antecedents.device).unsqueeze(1)
        choices = {
            "distance": bucket_values(places - antecedents),
            "speaker": (speakers.unsqueeze(1) == speakers[antecedents]).long(),
            "genre": torch.tensor(genre, device=antecedents.device),
        }
        parts = []
        for part, (name, table) in enumerate(self.features.items(), FEATURES):
            weight = self.dropout(table.get_parameter("weight"))
            parts.append(embedding(choices[name], self.score.project(part, weight)))
        return sum(parts[1:], start=parts[0])


def antecedent_loss(antecedents: Tensor, scores: Tensor, clusters: Tensor) -> Tensor:
    """Marginal likelihood of the right antecedents, negative and logarithmic, summed
    over the spans: [].

    "No antecedent" is right for a span of no cluster, and for a span whose cluster has
    none of its antecedents.

    Args:
        antecedents: [K, C], see `AntecedentScorer`.
        scores: [K, 1 + C].
        clusters: int64 [K], the gold cluster of each span, −1 for none.
    """
    own = clusters.unsqueeze(1)  # [K, 1]
    alike = (clusters[antecedents] == own) & (own >= 0)  # [K, C]
    right = alike & (scores[:, 1:] > -torch.inf)
    right = torch.cat([~right.any(dim=1, keepdim=True), right], dim=1)  # [K, 1 + C]
    gold = scores.masked_fill(~right, -torch.inf).logsumexp(dim=1)
    return (scores.logsumexp(dim=1) - gold).sum()
