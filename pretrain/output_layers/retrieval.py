"""Retrieval: how near are predicted vectors to the true words, and at which rank is the
true word found?

Cosine alone says little where the target vectors share one large direction, so the true
word is also ranked among the most frequent types. Retrieval ranks in the target table's
own space and counts every target, so that it compares across choices of targets.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from elmoc.corpus import Corpus
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import OutputLayer

# Predictions that are multiplied with the candidates at once.
BLOCK = 1024
# Predictions that are compared at once on a CPU: their scores stay in its cache, which
# is a fifth faster.
CPU_ROWS = 16


def retrieval(ranks: Tensor) -> dict[str, float]:
    """How well targets are found: from ranks [N], 1 the best, 0 (a miss) for a target
    outside the candidates.

    The mean reciprocal rank counts a miss as 0; `outside` is the share of misses.
    """
    ranks = ranks.double()
    inside = ranks > 0
    return {
        "accuracy_at_1": float((ranks == 1).double().mean()),
        "accuracy_at_10": float((inside & (ranks <= 10)).double().mean()),
        "reciprocal_rank": float(
            torch.where(inside, 1 / ranks.clamp(min=1), torch.zeros_like(ranks)).mean()
        ),
        "outside": float((~inside).double().mean()),
    }


def ranks_by_frequency(targets: Tensor, known: Tensor) -> Tensor:
    """int64 [N]: the ranks of targets [N] in the best constant ranking, 1 the best, 0
    for one outside the candidates.

    That is the order of frequency, which is the order of ids.

    Args:
        targets: ids of types.
        known: bool [K], which of the K most frequent types are candidates.
    """
    ranks = known.cumsum(dim=0) * known  # [K]
    return ranks[targets.clamp(max=len(known) - 1)] * (targets < len(known))


def perplexity(likelihoods: Tensor) -> float:
    """Of log-likelihoods [N]; NaN without any."""
    return float((-likelihoods.double().mean()).exp())


class Retriever:
    """Scores predicted vectors against one target table.

    Candidates are the `candidates` most frequent types (the first rows of the table);
    one without a vector is not among them, so that a target of that type is a miss.
    """

    def __init__(
        self, corpus: Corpus, table: LexiconTable, candidates: int, device: torch.device
    ) -> None:
        rows = torch.from_numpy(
            np.array(table.rows[: min(candidates, corpus.types)], dtype=np.float32)
        )
        self.table = table
        self.known = rows.any(dim=1)  # [K]
        self.candidates = F.normalize(rows, dim=1).to(device)  # [K, E]
        self.constant = mean_direction(table.rows, corpus.counts)  # [E]

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
        these `ranks` [N] by cosine.
        """
        constant_ranks = ranks_by_frequency(
            torch.from_numpy(ids.astype(np.int64)), self.known
        )
        return {
            name: {
                "cosine": float(self.cosines(predictions[part], ids[part]).mean()),
                # of the best constant prediction on the training text
                "constant_cosine": float(
                    self.cosines(
                        self.constant.expand(len(ids[part]), -1), ids[part]
                    ).mean()
                ),
                **retrieval(ranks[part]),
                **{
                    f"constant_{metric}": value
                    for metric, value in retrieval(constant_ranks[part]).items()
                },
            }
            for name, part in parts.items()
        }

    def cosines(self, predictions: Tensor, ids: np.ndarray) -> Tensor:
        """float32 [N]: cosine of each prediction [N, E] with its target, for the
        targets that have a direction.
        """
        targets = torch.from_numpy(
            np.asarray(self.table.rows[ids], dtype=np.float32)
        )  # [N, E]
        has_direction = targets.any(dim=1)
        return F.cosine_similarity(predictions.cpu(), targets, dim=1)[has_direction]

    def ranks(self, predictions: Tensor, ids: np.ndarray) -> Tensor:
        """int64 [N]: the rank of each target among the candidates by cosine, 1 the
        best, 0 if it is none of them.

        Exact; of candidates with equal cosine the true word counts as the last.
        """
        ranks = torch.zeros(len(ids), dtype=torch.int64)
        for block, scores, true in self.scores(
            predictions, ids
        ):  # the norm of a prediction does not change them
            ranks[block] = (scores >= true).sum(dim=1).cpu()
        return ranks

    def scores(
        self, predictions: Tensor, ids: np.ndarray
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Blocks of the targets that are candidates: their places [N'], the scores [N',
        K], the true words' [N', 1].

        A score is the product of a prediction with a candidate's direction, −∞ for a
        candidate without a vector.
        """
        targets = torch.from_numpy(ids.astype(np.int64))
        inside = torch.nonzero(
            (targets < len(self.known))
            & self.known[targets.clamp(max=len(self.known) - 1)]
        )[:, 0]
        device = self.candidates.device
        unknown = torch.nonzero(~self.known)[:, 0].to(device)
        rows = CPU_ROWS if device.type == "cpu" else BLOCK
        for block in inside.split(BLOCK):
            products = predictions[block].to(device) @ self.candidates.T
            products.index_fill_(1, unknown, -torch.inf)
            for start in range(0, len(block), rows):
                rows_ = block[start : start + rows]
                scores = products[start : start + rows]
                yield (
                    rows_,
                    scores,
                    scores.gather(1, targets[rows_].to(device).unsqueeze(1)),
                )


def mean_direction(rows: np.ndarray, counts: np.ndarray) -> Tensor:
    """float32 [E]: Σ count · w/|w| over a table, the direction of greatest mean cosine
    with the training targets.
    """
    total = np.zeros(rows.shape[1], dtype=np.float64)
    for start in range(0, len(rows), 65536):
        block = np.asarray(rows[start : start + 65536], dtype=np.float32)
        norms = np.linalg.norm(block, axis=1)
        weights = np.divide(
            counts[start : start + 65536],
            norms,
            out=np.zeros(len(block)),
            where=norms > 0,
        )
        total += weights @ block
    return torch.from_numpy(total.astype(np.float32))
