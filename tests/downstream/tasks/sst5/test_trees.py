"""Trees: read node by node, and damaged data refused with file and line."""

from collections.abc import Callable
from pathlib import Path

import pytest
from downstream.tasks.sst5.trees import parse_tree


def test_nodes_come_before_those_under_them() -> None:
    assert parse_tree("(3 (2 a) (4 (1 b) (0 c)))") == (
        ["a", "b", "c"],
        [(0, 3, 3), (0, 1, 2), (1, 3, 4), (1, 2, 1), (2, 3, 0)],
    )


@pytest.mark.parametrize(
    "line",
    [
        *("(3 (2 This) (3 works)", "(3 (2 This (3 works", "(3 (2 This) (3 works)))", "(2 one) (2 two)", "(2 a) b"),
        *("(5 works)", "(NN works)", "((2 works))", "(3 (2 ) (3 works))", "3\tThis works .", ") (2 works)"),
    ],
)
def test_a_line_that_is_no_tree(tmp_path: Path, fails: Callable[..., str], line: str) -> None:
    path = tmp_path / "trees.txt"
    path.write_text(f"(2 fine)\n\n{line}\n", encoding="utf-8")
    assert f"{path}, line 3" in fails("sentences", "sst5", path)
