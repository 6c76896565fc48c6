"""Trees of the Stanford Sentiment Treebank: how is a line of brackets read?"""

import re
import reprlib
from typing import NamedTuple

# A bracket that opens and its label, a bracket that closes, or a word (no-break spaces
# stay inside).
_TOKEN = re.compile(r"\([^ \t()]*|\)|[^ \t()]+")
_OPENING = re.compile(r"\([0-4]")


class Node(NamedTuple):
    """A node of a tree: its first word, its last word + 1, and its label."""

    begin: int
    end: int
    label: int


def parse_tree(line: str) -> tuple[list[str], list[Node]]:
    """The words of a tree, and its nodes, a node before those under it.

    Raises:
        ValueError: anything else.
    """
    words: list[str] = []
    nodes: list[Node] = []
    # Places in `nodes` of those whose brackets are open, the innermost last.
    open_nodes: list[int] = []
    for token in _TOKEN.findall(line):
        if not open_nodes and (nodes or token[0] != "("):
            raise ValueError(f"{reprlib.repr(token)} stands outside the tree")
        if token == ")":
            place = open_nodes.pop()
            nodes[place] = nodes[place]._replace(end=len(words))
        elif token[0] != "(":
            words.append(token)
        elif _OPENING.fullmatch(token):
            open_nodes.append(len(nodes))
            # The end is known when the bracket is closed.
            nodes.append(Node(len(words), len(words), int(token[1])))
        else:
            shown = reprlib.repr(token[1:])
            raise ValueError(f"the label {shown} is not one of 0, 1, 2, 3, 4")
    if open_nodes or any(node.begin == node.end for node in nodes):
        raise ValueError("a bracket is not closed, or a node holds no word")
    return words, nodes
