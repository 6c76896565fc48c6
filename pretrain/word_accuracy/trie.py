"""The candidate words as paths of subwords: which units may follow those that were read, and where a word ends."""

from collections.abc import Sequence

import numpy as np


class WordTrie:
    """Words by their units, in the order in which a direction reads these. Nodes have numbers; 0 is before any unit.

    ends      int64 [words]: the node that the last unit of a word leads to
    is_word   bool [nodes]: whether a word is read there
    is_over   bool [nodes]: whether it is one that no unit could make longer, so that it is over there

    Args:
        paths: the units of each word; of words with the same units the first counts.
        is_over: whether each word is over with its last unit, bool [words]. The others are over when a unit follows
            that begins a word.
    """

    def __init__(self, paths: Sequence[Sequence[int]], is_over: np.ndarray) -> None:
        children: list[dict[int, int]] = [{}]
        ends = []
        for path in paths:
            node = 0
            for unit in path:
                below = children[node].setdefault(unit, len(children))
                if below == len(children):
                    children.append({})
                node = below
            ends.append(node)
        self.ends = np.array(ends, dtype=np.int64)
        self.is_word = np.zeros(len(children), dtype=bool)
        self.is_word[self.ends] = True
        self.is_over = np.zeros(len(children), dtype=bool)
        self.is_over[self.ends[is_over]] = True
        self._counts = np.array([len(each) for each in children])
        self._first = np.cumsum(self._counts) - self._counts
        self._units = np.array([unit for each in children for unit in each], dtype=np.int64)
        self._nodes = np.array([node for each in children for node in each.values()], dtype=np.int64)

    def children(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What may follow nodes int64 [n]: for each unit the row of its node in `nodes`, the unit, and where it leads.

        Three arrays int64 [m].
        """
        counts = self._counts[nodes]
        rows = np.repeat(np.arange(len(nodes)), counts)
        before = np.cumsum(counts) - counts
        edges = np.arange(len(rows)) + np.repeat(self._first[nodes] - before, counts)
        return rows, self._units[edges], self._nodes[edges]
