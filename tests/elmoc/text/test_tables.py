"""Tables: rows of comma- and tab-separated text, with quotation marks as people and programs write them."""

import re
from itertools import product
from pathlib import Path

import pytest
from elmoc.text.tables import read_table, unquoted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # marks are a part of tab-separated text, as SNLI and MultiNLI have it
        ('a\tb\n"Stop\tx\n"Go" on"\t"y"\n6" long\t""\n', ['"Stop|x', '"Go" on"|"y"', '6" long|""']),
        # but for cells that pandas wrote, within marks because there are marks inside
        ('a\tb\n"6"" long"\tx\n"""no"""\ty\n', ['6" long|x', '"no"|y']),
        # or tabs and line ends, or that R wrote, with marks around all strings
        ('a\tb\n"Two\nlines"\tx\n"a\ttab"\ty\n', ["Two\nlines|x", "a\ttab|y"]),
        ('"a"\t"b"\n"Yes"\t1\n', ["Yes|1"]),
        ('a,b\n"Well, yes",x\n"no",y\n"Two\r\nlines","z"\n', ["Well, yes|x", "no|y", "Two\nlines|z"]),
        ('a,b\n"Go, he\nsaid",x\n"No, she\ndid",y\n', ["Go, he\nsaid|x", "No, she\ndid|y"]),
        ('a\n"Two\nlines"\n\n', ["Two\nlines"]),
    ],
)
def test_quotation_marks(tmp_path: Path, text: str, expected: list[str]) -> None:
    (tmp_path / "table").write_text(text + " \n", newline="")
    rows = dict(read_table(tmp_path / "table")[1])
    assert ["|".join(row.values()) for row in rows.values()] == expected
    assert min(rows) == 2


def test_cells_within_quotes_are_those_that_a_spreadsheet_writes() -> None:
    pattern = re.compile(r'"(?:[^"]|"")*""(?:[^"]|"")*"')
    for length in range(9):
        for cell in map("".join, product('"a', repeat=length)):
            expected = cell[1:-1].replace('""', '"') if pattern.fullmatch(cell) else cell
            assert unquoted(cell) == expected
    assert unquoted('"' + '""' * 1_000_000 + 'x"y"') == '"' + '""' * 1_000_000 + 'x"y"', "in linear time"
