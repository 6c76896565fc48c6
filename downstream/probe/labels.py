"""Labels: do the parts of the data, and a saved probe, have the same ones?

A label that training never had is never predicted. Where it is another spelling of one
that training had, it becomes this one; all others are counted in a warning.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any

from downstream.printing import note, warn
from downstream.probe.task import Task

# Labels that a line lists, the most frequent first.
LISTED = 10


def count_labels(task: Task[Any, Any], examples: Sequence[Any]) -> dict[str, int]:
    """How often each label stands in the examples."""
    return dict(Counter(chain.from_iterable(map(task.labels, examples))))


def as_trained(
    task: Task[Any, Any], name: str, examples: list[Any], trained: dict[str, int]
) -> list[Any]:
    """The examples of a part with labels in the spelling of training.

    A note counts the labels that are spelled anew, and a warning those that training
    never had.

    Args:
        task: names the labels of an example.
        name: of the part.
        examples: of the part.
        trained: label → its number in the training data; empty for a task without
            labels.
    """
    if not trained:
        return examples
    counts = count_labels(task, examples)
    unknown = {label: count for label, count in counts.items() if label not in trained}
    same = _by_spelling(trained)
    meant = {label: same.get(_plain(label), []) for label in unknown}
    # Of two spellings in the training data, nobody knows which one is meant.
    renamed = {label: known[0] for label, known in meant.items() if len(known) == 1}
    for label, known in renamed.items():
        note(
            f"{name}: the label {label!r} ({unknown.pop(label):,}) is read as "
            f"{known!r}, as the training data spells it"
        )
    if not counts:
        warn(f"{name} has no label, such as {listed(trained)} of the training data")
    if unknown:
        share = f"{sum(unknown.values()):,} of {sum(counts.values()):,} labels"
        warn(
            f"{name}: {share} are unknown to the training data, and are never learned: "
            f"{listed(unknown)}; it has {listed(trained)}"
        )
    return [task.with_labels(example, renamed) for example in examples]


def warn_of_spellings(name: str, counts: dict[str, int]) -> None:
    """Warn of labels of one part that differ in nothing but their spelling.

    They stay apart: the data may mean two labels.
    """
    for labels in _by_spelling(counts).values():
        if len(labels) > 1:
            found = listed({label: counts[label] for label in labels})
            warn(
                f"{name}: {found} are learned as different labels: spell them alike "
                "where they are one"
            )


def _by_spelling(labels: dict[str, int]) -> dict[str, list[str]]:
    """The labels of each spelling without capitals."""
    found = defaultdict(list)
    for label in labels:
        found[_plain(label)].append(label)
    return found


def _plain(label: str) -> str:
    """A label without what people write in different ways: capitals, full-width
    letters, blanks, hyphens and underscores.
    """
    folded = unicodedata.normalize("NFKC", label).casefold()
    return re.sub(r"[\s_-]+", "_", folded.strip())


def listed(counts: dict[str, int]) -> str:
    """Labels and their numbers, the most frequent first."""
    ordered = sorted(counts, key=lambda label: (-counts[label], label))
    shown = ", ".join(f"{label!r} ({counts[label]:,})" for label in ordered[:LISTED])
    more = len(ordered) - LISTED
    return f"{shown} and {more:,} more" if more > 0 else shown
