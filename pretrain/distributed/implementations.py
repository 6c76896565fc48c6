"""Implementations: which processes compute by others than rank 0, as where a machine has no compiler."""

from collections.abc import Sequence


def other_implementations(everywhere: Sequence[str]) -> list[str]:
    """A line for each implementation, in words and by rank, that is not rank 0's."""
    ranks_of: dict[str, list[int]] = {}
    for rank, name in enumerate(everywhere):
        ranks_of.setdefault(name, []).append(rank)
    del ranks_of[everywhere[0]]
    return [
        f"{'ranks' if len(ranks) > 1 else 'rank'} {', '.join(map(str, ranks))}: by {name}, unlike rank 0; all wait for "
        "the slowest"
        for name, ranks in ranks_of.items()
    ]
