"""Scorer of coreference: which mentions and links are right?

Chains are counted as by the official CoNLL scorer (8.01, Pradhan et al. 2014):
MUC (Vilain et al. 1995), B³ (Bagga and Baldwin 1998) and CEAFφ4 (Luo 2005). A mention
is its first and last word; a chain is a list of mentions.
Every metric is a row of four counts: numerator and denominator of recall, numerator and
denominator of precision. Rows of documents are summed before the division. A mention
that is repeated in the response is counted where it comes first. One that is repeated
in the key stays in every chain, and belongs to the last one where a metric asks for its
chain.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain as chained

import numpy as np
from scipy.optimize import linear_sum_assignment

from downstream.metrics import ratio

Mention = tuple[int, int]
Chain = Sequence[Mention]

# The order of the rows of counts.
METRICS = ("MUC", "B³", "CEAFφ4", "mentions")


def count_chains(key: Sequence[Chain], response: Sequence[Chain]) -> np.ndarray:
    """float64 [4, 4]: the counts of each of `METRICS` for one document."""
    response = unrepeated(response)
    metrics = (_muc, _b_cubed, _ceaf, _mentions)
    return np.array([metric(key, response) for metric in metrics])


def chain_metrics(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Summed counts [..., 4] → precision, recall and F1, [...] each, in percent; 0 for
    an empty denominator.
    """
    recall = ratio(counts[..., 0], counts[..., 1])
    precision = ratio(counts[..., 2], counts[..., 3])
    return precision, recall, ratio(2 * precision * recall, precision + recall) / 100


def without_singletons(chains: Sequence[Chain]) -> list[Chain]:
    """The chains of two or more mentions."""
    return [chain for chain in chains if len(chain) > 1]


def unrepeated(chains: Sequence[Chain]) -> list[Chain]:
    """The chains without mentions that stood before, and without chains that this
    leaves empty.
    """
    seen: set[Mention] = set()
    kept: list[Chain] = []
    for chain in chains:
        new = [mention for mention in dict.fromkeys(chain) if mention not in seen]
        seen.update(new)
        if new:
            kept.append(new)
    return kept


def _muc(key: Sequence[Chain], response: Sequence[Chain]) -> list[float]:
    """Links: a chain of n mentions has n − 1."""
    common = sum(mentions - 1 for _, _, mentions in _overlaps(key, response))
    of_key = sum(len(chain) - 1 for chain in key)
    of_response = sum(len(chain) - 1 for chain in response)
    return [common, of_key, common, of_response]


def _b_cubed(key: Sequence[Chain], response: Sequence[Chain]) -> list[float]:
    """For each mention of both sides, the share of its chain that is in its other
    chain.
    """
    recall = 0.0
    precision = 0.0
    members = [set(chain) for chain in key]
    for chain, row, mentions in _overlaps(key, response):
        common = len(members[row].intersection(chain))
        recall += mentions * common / len(key[row])
        precision += mentions * common / len(chain)
    return [recall, sum(map(len, key)), precision, sum(map(len, response))]


def _ceaf(key: Sequence[Chain], response: Sequence[Chain]) -> list[float]:
    """φ4, the Dice coefficient of two chains, under the best one-to-one alignment of
    chains.
    """
    similarity = np.zeros((len(key), len(response)))
    numbers = _numbers(response)
    for row, chain in enumerate(key):
        columns = Counter(numbers[each] for each in chain if each in numbers)
        for column, common in columns.items():
            similarity[row, column] = 2 * common / (len(chain) + len(response[column]))
    best = float(similarity[linear_sum_assignment(similarity, maximize=True)].sum())
    return [best, len(key), best, len(response)]


def _mentions(key: Sequence[Chain], response: Sequence[Chain]) -> list[float]:
    """Mentions that both sides have, whatever their chains."""
    left = set(chained.from_iterable(key))
    right = set(chained.from_iterable(response))
    return [len(left & right), len(left), len(left & right), len(right)]


def _overlaps(
    key: Sequence[Chain], response: Sequence[Chain]
) -> Iterator[tuple[Chain, int, int]]:
    """Yield (chain of the response, number of a key chain, how many of its mentions
    belong to that) for all pairs.
    """
    numbers = _numbers(key)
    for chain in response:
        rows = Counter(numbers[each] for each in chain if each in numbers)
        for row, mentions in rows.items():
            yield chain, row, mentions


def _numbers(chains: Sequence[Chain]) -> dict[Mention, int]:
    """The number of the chain of each mention: of its last chain, if it has several."""
    numbers: dict[Mention, int] = {}
    for number, chain in enumerate(chains):
        numbers.update(dict.fromkeys(chain, number))
    return numbers
