"""Trees of the Stanford Sentiment Treebank: bracketed sentences with a label from 0 to 4 at every node, one a line."""

import re
import reprlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from downstream.inputs.sentence import Sentence, make_sentence
from elmoc.errors import InputError
from elmoc.files.text import read_lines

LABELS = {str(label): label for label in range(5)}
MOST_WORDS = 100_000
"""The words of the phrases of all nodes of a tree together, at most: those of a tree that is one long chain are half
the square of its words. The treebank's longest sentence has 56 words."""

_EXAMPLE = "(3 (2 This) (3 (3 works) (2 .)))"
_TOKEN = re.compile(r"\([^ \t()]*|\)|[^ \t()]+")
"""A bracket that opens and its label, a bracket that closes, or a word (no-break spaces stay inside)."""


class Node(NamedTuple):
    """A node of a tree: its first word, its last word + 1, and its label."""

    begin: int
    end: int
    label: int


def read_trees(path: Path) -> Iterator[tuple[Sentence, list[Node]]]:
    """Yield sentence and nodes (the root first) of each tree of a file (plain or `.gz`); blank lines are skipped.

    Raises `InputError` for a missing or damaged file, one without trees, and a line that is not exactly one tree or is
    one whose phrases have more than `MOST_WORDS` together.
    """
    found = False
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            words, nodes = parse_tree(line)
        except ValueError as error:
            raise InputError(
                f"{path}, line {number}: {error}; a tree with a label from 0 to 4 at every node is expected, "
                f"like {_EXAMPLE}"
            ) from None
        found = True
        yield make_sentence(words, file=path, line=number), nodes
    if not found:
        raise InputError(f"{path} holds no trees: one a line is expected, like {_EXAMPLE}")


def parse_tree(line: str) -> tuple[list[str], list[Node]]:
    """The words of a tree, and its nodes, a node before those under it.

    Raises `ValueError` that says what is wrong with a line that is not exactly one tree.
    """
    words: list[str] = []
    nodes: list[Node] = []
    phrase_words = 0
    open_nodes: list[int] = []
    for token in _TOKEN.findall(line):
        if nodes and not open_nodes:
            raise ValueError(f"{reprlib.repr(token)} stands behind the end of the tree")
        if token[0] == "(":
            if token[1:] not in LABELS:
                raise ValueError(f"the label {reprlib.repr(token[1:])} is not one of 0, 1, 2, 3, 4")
            open_nodes.append(len(nodes))
            nodes.append(Node(len(words), len(words), LABELS[token[1:]]))
        elif not open_nodes:
            raise ValueError(f"the line begins with {reprlib.repr(token)} and not with a bracket")
        elif token == ")":
            node = open_nodes.pop()
            begin, _, label = nodes[node]
            if begin == len(words):
                raise ValueError(f"a node with the label {label} holds no word")
            nodes[node] = Node(begin, len(words), label)
            phrase_words += len(words) - begin
            if phrase_words > MOST_WORDS:
                raise ValueError(f"the phrases of the tree's nodes have more than {MOST_WORDS:,} words together")
        else:
            words.append(token)
    if open_nodes:
        count = len(open_nodes)
        raise ValueError("1 bracket is not closed" if count == 1 else f"{count} brackets are not closed")
    return words, nodes
