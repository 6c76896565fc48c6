"""Metrics: counts of what is right, gold and predicted, their precision, recall and F1,
and the official scorers.

**Semantic roles** are counted as by `srl-eval.pl` of CoNLL-2005 and CoNLL-2012. It
first makes whole arguments of the
spans of a proposition: a `C-X` continues the last X before it, and both are one
argument in pieces; without an X before it, it begins one. Other roles are not changed:
`R-ARG0` is a role like any other. An argument is correct when the role and all of its
pieces are. The totals leave out V, and C-V with it, which is a piece of it.

AllenNLP's span F1 differs for arguments in pieces. Where a proposition has a `C-X`, it
replaces all spans whose labels contain the letters X — R-X and a second, separate X
among them, too — by one X from the first word of the first to the
last word of the last: only the outer boundaries count then. Of V it leaves out the
spans, but not C-V, which counts as such an X and takes any ARGM-ADV with it.

**Coreference** is counted as by the official CoNLL scorer (8.01, Pradhan et al. 2014):
MUC (Vilain et al. 1995), B³ (Bagga and Baldwin 1998) and CEAFφ4 (Luo 2005). A mention
is its first and last word; a chain is a list of mentions.
Every metric is a row of four counts: numerator and denominator of recall, numerator and
denominator of precision. Rows of documents are summed before the division. A mention
that is repeated in the response is counted where it comes first. One that is repeated
in the key stays in every chain, and belongs to the last one where a metric asks for its
chain.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from downstream.readers.columns import Span


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """`numerator` / `denominator` in percent, 0 where the denominator is 0."""
    numerator = np.asarray(numerator, dtype=np.float64)
    denominator = np.asarray(denominator, dtype=np.float64)
    return 100 * np.divide(
        numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0
    )


def count_labels(
    gold: Iterable[tuple[Any, ...]], predicted: Iterable[tuple[Any, ...]]
) -> dict[str, np.ndarray]:
    """Label → float64 [3]: the number of right, of gold and of predicted items, which
    begin with their label.
    """
    expected = Counter(gold)
    found = Counter(predicted)
    counts: dict[str, np.ndarray] = {}
    for place, items in enumerate((expected & found, expected, found)):
        for (label, *_), times in items.items():
            counts.setdefault(label, np.zeros(3))[place] += times
    return counts


def precision_recall_f1(counts: np.ndarray, what: str) -> dict[str, np.ndarray]:
    """The three metrics, in percent, each under its name after `what`: "entity F1" for
    "entity".

    Args:
        counts: [..., 3]: the number of right ones, of those in the gold data, and of
            predicted ones.
    """
    right, gold, predicted = np.moveaxis(np.asarray(counts, dtype=np.float64), -1, 0)
    return {
        f"{what} F1": ratio(2 * right, gold + predicted),
        f"{what} precision": ratio(right, predicted),
        f"{what} recall": ratio(right, gold),
    }


def label_table(counts: Mapping[str, np.ndarray]) -> str:
    """A line a label, most frequent first, from its counts [3]: right, gold, predicted."""
    if not counts:
        return ""
    width = max(len(name) for name in counts)
    lines = [f"  {'':{width}}  precision  recall      F1    gold  predicted"]
    for name, row in sorted(counts.items(), key=lambda item: (-item[1][1], item[0])):
        f1, precision, recall = precision_recall_f1(row, "").values()
        lines.append(
            f"  {name:{width}}  {precision:9.2f}  {recall:6.2f}  {f1:6.2f}  {row[1]:6.0f}  {row[2]:9.0f}"
        )
    return "\n".join(lines)


CONTINUED = "C-"
# The role of the predicate's own words.
PREDICATE = "V"


def whole_arguments(
    spans: Iterable[Span],
) -> list[tuple[str, tuple[tuple[int, int], ...]]]:
    """The arguments of a proposition, V among them: role, and the pieces that fill it,
    first and last words of each.
    """
    pieces: list[tuple[str, list[tuple[int, int]]]] = []
    last: dict[str, list[tuple[int, int]]] = {}
    for label, first, end in sorted(spans, key=lambda span: (span.first, -span.last)):
        role = label.removeprefix(CONTINUED)
        if role == label or role not in last:
            last[role] = []
            pieces.append((role, last[role]))
        last[role].append((first, end))
    return [(role, tuple(places)) for role, places in pieces]


def count_arguments(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]
) -> np.ndarray:
    """float64 [3]: how many arguments are correct, gold and predicted in all of the
    propositions, without V.
    """
    return sum(count_roles(gold, predicted).values(), np.zeros(3))


def count_roles(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]
) -> dict[str, np.ndarray]:
    """For each role but V, float64 [3]: how many arguments are correct, gold and
    predicted.
    """
    expected, found = (
        [
            (role, pieces, place)
            for place, spans in enumerate(side)
            for role, pieces in whole_arguments(spans)
        ]
        for side in (gold, predicted)
    )
    counts = count_labels(expected, found)
    counts.pop(PREDICATE, None)
    return counts


Mention = tuple[int, int]
Chain = Sequence[Mention]

# The order of the rows of counts.
METRICS = ("MUC", "B³", "CEAFφ4", "mentions")


def count_chains(key: Sequence[Chain], response: Sequence[Chain]) -> np.ndarray:
    """float64 [4, 4]: the counts of each of `METRICS` for one document."""
    response = unrepeated(response)
    return np.array(
        [metric(key, response) for metric in (_muc, _b_cubed, _ceaf, _mentions)]
    )


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
    return [
        common,
        sum(len(chain) - 1 for chain in key),
        common,
        sum(len(chain) - 1 for chain in response),
    ]


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
    number = {
        mention: column for column, chain in enumerate(response) for mention in chain
    }
    for row, chain in enumerate(key):
        for column, common in Counter(
            number[mention] for mention in chain if mention in number
        ).items():
            similarity[row, column] = 2 * common / (len(chain) + len(response[column]))
    best = float(similarity[linear_sum_assignment(similarity, maximize=True)].sum())
    return [best, len(key), best, len(response)]


def _mentions(key: Sequence[Chain], response: Sequence[Chain]) -> list[float]:
    """Mentions that both sides have, whatever their chains."""
    left, right = (
        {mention for chain in chains for mention in chain} for chains in (key, response)
    )
    return [len(left & right), len(left), len(left & right), len(right)]


def _overlaps(
    key: Sequence[Chain], response: Sequence[Chain]
) -> Iterator[tuple[Chain, int, int]]:
    """Yield (chain of the response, number of a key chain, how many of its mentions
    belong to that) for all pairs.
    """
    number = {mention: row for row, chain in enumerate(key) for mention in chain}
    for chain in response:
        for row, mentions in Counter(
            number[mention] for mention in chain if mention in number
        ).items():
            yield chain, row, mentions
