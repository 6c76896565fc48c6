"""Trees: read node by node, and damaged data refused with file and line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from downstream.readers.trees import parse_tree


def test_nodes_come_before_those_under_them() -> None:
    assert parse_tree("(3 (2 a) (4 (1 b) (0 c)))") == (
        ["a", "b", "c"],
        [(0, 3, 3), (0, 1, 2), (1, 3, 4), (1, 2, 1), (2, 3, 0)],
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("(3 (2 This) (3 works)", "1 bracket is not closed"),
        ("(3 (2 This (3 works", "3 brackets are not closed"),
        ("(3 (2 This) (3 works)))", "')' stands behind the end of the tree"),
        ("(2 one) (2 two)", "'(2' stands behind the end of the tree"),
        ("(5 works)", "the label '5' is not one of 0, 1, 2, 3, 4"),
        ("(NN works)", "the label 'NN' is not one of"),
        ("((2 works))", "the label '' is not one of"),
        ("(3 (2 ) (3 works))", "a node with the label 2 holds no word"),
        ("3\tThis works .", "the line begins with '3' and not with a bracket"),
        (") (2 works)", "the line begins with ')' and not with a bracket"),
    ],
)
def test_a_line_that_is_no_tree(tmp_path: Path, fails: Callable[..., str], line: str, problem: str) -> None:
    path = tmp_path / "trees.txt"
    path.write_text(f"(2 fine)\n\n{line}\n", encoding="utf-8")
    message = fails("sentences", "sst5", path)
    assert f"{path}, line 3: {problem}" in message
    assert "a label from 0 to 4 at every node is expected" in message


def test_a_file_without_trees(tmp_path: Path, fails: Callable[..., str]) -> None:
    (tmp_path / "trees.txt").write_text("\n \n")
    assert "trees.txt holds no trees" in fails("sentences", "sst5", tmp_path / "trees.txt")
    assert "missing.txt does not exist" in fails("sentences", "sst5", tmp_path / "missing.txt")


def test_a_chain_of_thirty_thousand_nodes_is_refused_at_once() -> None:
    deep = "(2 (2 a) " * 30_000 + "(2 b)" + ")" * 30_000
    with pytest.raises(ValueError, match="the phrases of the tree's nodes have more than 100,000 words together"):
        parse_tree(deep)
    words, nodes = parse_tree("(2 (2 a) " * 400 + "(2 b)" + ")" * 400)
    assert (len(words), len(nodes)) == (401, 801)


def test_what_is_quoted_is_shortened(tmp_path: Path, fails: Callable[..., str]) -> None:
    for line in ("(" + "x" * 100_000 + " a)", "x" * 100_000, "(2 a) " + "x" * 100_000):
        (tmp_path / "trees.txt").write_text(line + "\n")
        assert len(fails("sentences", "sst5", tmp_path / "trees.txt")) < 500
