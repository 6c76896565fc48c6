"""Retrieval: how near are predicted vectors to the true words, and at which rank is the
true word found?

Cosine alone says little where the target vectors share one large direction, so the true
word is also ranked among the most frequent types. Retrieval ranks in the target table's
own space and counts every target, so that it compares across choices of targets.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from pretrain.input_layers import LexiconTable
from pretrain.output_layers import OutputLayer, shares

# Predictions that are multiplied and compared with the candidates at once.
BLOCK = 1024
# Rows of a table that are read at once: 80 MB of 300 float32 numbers each.
ROWS_READ = 65_536
# Norms are bounded from below, as in `F.cosine_similarity`, so that a vector of zeros
# has finite gradients.
NORM = 1e-8


def unit(vectors: Tensor) -> Tensor:
    """Vectors [..., E] divided by their lengths."""
    return F.normalize(vectors, dim=-1, eps=NORM)


def retrieval(ranks: Tensor, prefix: str = "") -> dict[str, float]:
    """How well targets are found: from ranks [N], 1 the best, 0 (a miss) for a target
    outside the candidates.

    The mean reciprocal rank counts a miss as 0; `outside` is the share of misses. The
    names of the metrics begin with the prefix.
    """
    ranks = ranks.double()
    inside = ranks > 0
    return {
        f"{prefix}accuracy_at_1": float((ranks == 1).double().mean()),
        f"{prefix}accuracy_at_10": float((inside & (ranks <= 10)).double().mean()),
        f"{prefix}reciprocal_rank": float((inside / ranks.clamp(min=1)).mean()),
        f"{prefix}outside": float((~inside).double().mean()),
    }


def perplexity(likelihoods: Tensor) -> float:
    """Of log-likelihoods [N]; NaN without any."""
    return float((-likelihoods.double().mean()).exp())


class Retriever:
    """Scores predicted vectors against one target table.

    Candidates are the `candidates` most frequent types (the first rows of the table);
    one without a vector is not among them, so that a target of that type is a miss. How
    often an epoch reads each type is `counts_read` [V].
    """

    def __init__(
        self,
        counts_read: np.ndarray,
        table: LexiconTable,
        candidates: int,
        device: torch.device,
    ) -> None:
        first = np.array(table.rows[:candidates], dtype=np.float32)
        rows = torch.from_numpy(first)  # [K, E]
        self.table = table
        self.known = rows.any(dim=1)  # [K]
        self.candidates = F.normalize(rows, dim=1).to(device)  # [K, E]
        self.lengths = rows.norm(dim=1).to(device)  # [K]
        self.constant = mean_direction(table.rows, counts_read)  # [E]
        # of the share of each candidate in the text read
        frequencies = np.log(shares(counts_read))[: len(rows)].astype(np.float32)
        self.log_frequency = torch.from_numpy(frequencies)  # [K]

    def score(
        self,
        layer: OutputLayer,
        predictions: Tensor,
        ids: np.ndarray,
        parts: Mapping[str, slice],
    ) -> dict[str, dict[str, float]]:
        """See `Scorer`: mean cosine and retrieval by cosine, beside a constant's."""
        return self.metrics(self.ranks(predictions, ids), predictions, ids, parts)

    def metrics(
        self,
        ranks: Tensor,
        predictions: Tensor,
        ids: np.ndarray,
        parts: Mapping[str, slice],
    ) -> dict[str, dict[str, float]]:
        """The metrics of parts of predictions [N, E] of the types `ids` [N], which have
        these `ranks` [N].
        """
        # A constant ranking is the order of frequency in the corpus: that of ids.
        # One more, of the types that are no candidates.
        by_frequency = F.pad(self.known.cumsum(dim=0) * self.known, (0, 1))  # [K + 1]
        targets = torch.from_numpy(ids.astype(np.int64))
        constant_ranks = by_frequency[targets.clamp(max=len(self.known))]
        metrics = {}
        for name, part in parts.items():
            own = ids[part]
            # the best constant prediction on the training text
            constant = self.constant.expand(len(own), -1)
            metrics[name] = {
                "cosine": float(self.cosines(predictions[part], own).mean()),
                "constant_cosine": float(self.cosines(constant, own).mean()),
                **retrieval(ranks[part]),
                **retrieval(constant_ranks[part], "constant_"),
            }
        return metrics

    def cosines(self, predictions: Tensor, ids: np.ndarray) -> Tensor:
        """float32 [N]: cosine of each prediction [N, E] with its target, for the
        targets that have a direction.
        """
        targets = torch.from_numpy(self.table.rows[ids].astype(np.float32))  # [N, E]
        has_direction = targets.any(dim=1)
        return F.cosine_similarity(predictions.cpu(), targets, dim=1)[has_direction]

    def ranks(self, predictions: Tensor, ids: np.ndarray) -> Tensor:
        """int64 [N]: the rank of each target among the candidates by cosine, 1 the
        best, 0 if it is none of them.

        Of candidates with equal cosine the true word counts as the last.
        """
        ranks = torch.zeros(len(ids), dtype=torch.int64)
        # the norm of a prediction does not change the order of its scores
        for block, scores, place in self.scores(predictions, ids):
            ranks[block] = (scores >= scores.gather(1, place)).sum(dim=1).cpu()
        return ranks

    def scores(
        self, predictions: Tensor, ids: np.ndarray
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Blocks of the targets that are candidates: their places [N'], the scores [N',
        K], and the places of the true words among these [N', 1].

        A score is the product of a prediction with a candidate's direction, −∞ for a
        candidate without a vector.
        """
        targets = torch.from_numpy(ids.astype(np.int64))
        known = self.known[targets.clamp(max=len(self.known) - 1)]
        inside = torch.nonzero((targets < len(self.known)) & known)[:, 0]
        device = self.candidates.device
        unknown = torch.nonzero(~self.known)[:, 0].to(device)
        for block in inside.split(BLOCK):
            scores = predictions[block].to(device) @ self.candidates.T  # [N', K]
            scores.index_fill_(1, unknown, -torch.inf)
            yield block, scores, targets[block].to(device).unsqueeze(1)


class ScoreRetriever(Retriever, ABC):
    """Ranks and perplexity by the scores that a layer itself gives the candidates,
    beside cosines.
    """

    @abstractmethod
    def own_scores(
        self, layer: OutputLayer, cosines: Tensor, predictions: Tensor
    ) -> Tensor:
        """The scores [N', K] of a layer, from the cosines [N', K] of its predictions
        [N', E] with the candidates, which may change: a block is hundreds of MB.

        A cosine is −∞ for a candidate without a vector, and so has to be its score.
        """

    def score(
        self,
        layer: OutputLayer,
        predictions: Tensor,
        ids: np.ndarray,
        parts: Mapping[str, slice],
    ) -> dict[str, dict[str, float]]:
        """See `Scorer`. The perplexity is of the targets among the candidates; the
        constant prediction is their frequencies.
        """
        targets = torch.from_numpy(ids.astype(np.int64))
        ranks = torch.zeros_like(targets)
        likelihoods = torch.zeros(len(ids))
        for block, cosines, place in self.scores(unit(predictions), ids):
            scores = self.own_scores(layer, cosines, predictions[block])
            true = scores.gather(1, place)
            ranks[block] = (scores >= true).sum(dim=1).cpu()
            likelihoods[block] = (true[:, 0] - scores.logsumexp(dim=1)).cpu()
        metrics = self.metrics(ranks, predictions, ids, parts)
        known = self.log_frequency[self.known]
        constants = self.log_frequency - known.logsumexp(dim=0)  # [K]
        for name, part in parts.items():
            inside = ranks[part] > 0  # targets that are candidates
            constant = constants[targets[part][inside]]
            metrics[name]["perplexity"] = perplexity(likelihoods[part][inside])
            metrics[name]["constant_perplexity"] = perplexity(constant)
        return metrics


def mean_direction(rows: np.ndarray, counts: np.ndarray) -> Tensor:
    """float32 [E]: Σ count · w/|w| over a table, the direction of greatest mean cosine
    with the training targets.
    """
    total = np.zeros(rows.shape[1], dtype=np.float64)
    for start in range(0, len(rows), ROWS_READ):
        block = np.asarray(rows[start : start + ROWS_READ], dtype=np.float32)
        norms = np.linalg.norm(block, axis=1)
        own = counts[start : start + ROWS_READ]
        # types without a vector have no weight
        weights = np.divide(own, norms, out=np.zeros(len(block)), where=norms > 0)
        total += weights @ block
    return torch.from_numpy(total.astype(np.float32))
