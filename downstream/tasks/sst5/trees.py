"""Trees of the Stanford Sentiment Treebank: how is a line of brackets read?"""

import re
import reprlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from downstream.inputs.sentence import TaskSentence, make_sentence
from elmoc.errors import InputError, reading
from elmoc.files.text import read_lines

LABELS = {str(label): label for label in range(5)}
# The words of the phrases of all nodes of a tree together: in a damaged file they grow
# with the square of its length.
MOST_WORDS = 100_000
# A bracket that opens and its label, a bracket that closes, or a word (no-break spaces
# stay inside).
_TOKEN = re.compile(r"\([^ \t()]*|\)|[^ \t()]+")


class Node(NamedTuple):
    """A node of a tree: its first word, its last word + 1, and its label."""

    begin: int
    end: int
    label: int


def read_trees(path: Path) -> Iterator[tuple[TaskSentence, list[Node]]]:
    """Yield sentence and nodes (the root first) of each tree of a file (plain or
    `.gz`); blank lines are skipped.

    Raises:
        InputError: a file without trees, or a line that is not exactly one tree.
    """
    found = False
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            found = True
            with reading(f"{path}, line {number}"):
                words, nodes = parse_tree(line)
            yield make_sentence(words, file=path, line=number), nodes
    if not found:
        raise InputError(
            f"{path} holds no trees: one a line is expected, like "
            "(3 (2 This) (3 (3 works) (2 .)))"
        )


def parse_tree(line: str) -> tuple[list[str], list[Node]]:
    """The words of a tree, and its nodes, a node before those under it.

    Raises:
        ValueError: anything else.
    """
    words: list[str] = []
    nodes: list[Node] = []
    phrase_words = 0
    # Places in `nodes` of those whose brackets are open, the innermost last.
    open_nodes: list[int] = []
    for token in _TOKEN.findall(line):
        if not open_nodes and (nodes or token[0] != "("):
            raise ValueError(f"{reprlib.repr(token)} stands outside the tree")
        if token[0] == "(":
            label = token[1:]
            if label not in LABELS:
                shown = reprlib.repr(label)
                raise ValueError(f"the label {shown} is not one of 0, 1, 2, 3, 4")
            open_nodes.append(len(nodes))
            # The end is known when the bracket is closed.
            nodes.append(Node(len(words), len(words), LABELS[label]))
        elif token == ")":
            place = open_nodes.pop()
            node = nodes[place]._replace(end=len(words))
            nodes[place] = node
            phrase_words += node.end - node.begin
            if node.begin == node.end:
                raise ValueError("a node holds no word")
            if phrase_words > MOST_WORDS:
                raise ValueError(f"all nodes hold more than {MOST_WORDS:,} words")
        else:
            words.append(token)
    if open_nodes:
        raise ValueError(f"{len(open_nodes)} brackets are not closed")
    return words, nodes
