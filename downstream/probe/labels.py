"""Labels: do the parts of the data, and a saved probe, have the same ones?

A label that training never had is never predicted: a warning counts them.
"""

from elmoc.errors import warn

# Labels that a line lists, the most frequent first.
LISTED = 10


def warn_of_unknown(name: str, counts: dict[str, int], trained: dict[str, int]) -> None:
    """Warn of labels of a part that training never had.

    Args:
        name: of the part.
        counts: label → its number in the part.
        trained: label → its number in the training data; empty for a task without
            labels.
    """
    if trained and not counts:
        warn(f"{name} has no label, such as {listed(trained)} of the training data")
    unknown = {label: count for label, count in counts.items() if label not in trained}
    if unknown:
        share = f"{sum(unknown.values()):,} of {sum(counts.values()):,} labels"
        warn(
            f"{name}: {share} are unknown to the training data, and are never learned: "
            f"{listed(unknown)}; it has {listed(trained)}"
        )


def listed(counts: dict[str, int]) -> str:
    """Labels and their numbers, the most frequent first."""
    ordered = sorted(counts, key=lambda label: (-counts[label], label))
    shown = ", ".join(f"{label!r} ({counts[label]:,})" for label in ordered[:LISTED])
    more = len(ordered) - LISTED
    return f"{shown} and {more:,} more" if more > 0 else shown
