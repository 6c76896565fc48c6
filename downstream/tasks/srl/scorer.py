"""Scorer of semantic roles: which arguments are right?

Arguments are counted as by `srl-eval.pl` of CoNLL-2005 and CoNLL-2012. It
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
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from downstream.metrics import count_items
from downstream.readers.columns import Span

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
        # A piece without a beginning begins an argument, as in srl-eval.pl.
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
    return count_items(_all_arguments(gold), _all_arguments(predicted))


def _all_arguments(propositions: Sequence[Iterable[Span]]) -> list[tuple[Any, ...]]:
    """The number of its proposition, role and pieces of each argument but V."""
    return [
        (place, role, pieces)
        for place, spans in enumerate(propositions)
        for role, pieces in whole_arguments(spans)
        if role != PREDICATE
    ]
