"""Cells of the tables: numbers as they are shown, and Markdown that cells cannot break."""

import pytest

from downstream.results.columns import format_number, format_p
from downstream.results.text_table import Column, TextTable


def test_pipes_in_cells_do_not_end_them() -> None:
    table = TextTable("Names", [Column("a", ["x|y"]), Column("n", ["1"], right=True)])
    assert table.markdown() == "**Names**\n\n| a | n |\n| --- | ---: |\n| x\\|y | 1 |"
    assert table.text() == "Names\n\na    n\n───  ─\nx|y  1"


@pytest.mark.parametrize(
    ("p", "text"), [(0.0001, "<0.001"), (0.001, "0.001"), (0.0249, "0.025"), (0.5, "0.500"), (0.9999, ">0.999")]
)
def test_p_has_three_decimals(p: float, text: str) -> None:
    assert format_p(p) == text


@pytest.mark.parametrize(("number", "text"), [(0.123, "0.12"), (9.94, "9.9"), (9.96, "10"), (1234.5, "1,234")])
def test_numbers_of_runs_are_short(number: float, text: str) -> None:
    assert format_number(number) == text
