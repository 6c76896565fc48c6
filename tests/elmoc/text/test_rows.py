"""Rows: which column is text, what text a row can have, and which rows are left out."""

import json
from pathlib import Path
from typing import Any

import pytest
from elmoc.errors import InputError
from elmoc.text.documents import TextDocument, read_documents

CHOSEN = {
    "the one that is called text": ([{"title": "A b", "text": "C d"}], "text"),
    "the only one with strings": ([{"n": 1, "body": None}, {"n": 2, "body": "A b"}], "body"),
    "numbers in strings are no text": ([{"id": "17", "year": "1984.5", "review": "A b"}], "review"),
    "words, too": ([{"id": "0", "tokens": ["A", "b"], "ner_tags": [0, 1]}], "tokens"),
    "by rows behind the first": ([{"n": "1", "body": ""}, {"n": "2", "body": "A b"}], "body"),
    "none of two": ([{"title": "A b", "body": "C d"}], ""),
    "none of numbers": ([{"a": 1, "b": "2"}], ""),
    "a first line that is a row": ([{"3": "4", "Oil fell.": "Rain fell."}], ""),
}


@pytest.mark.parametrize("case", CHOSEN)
def test_the_column_of_text(tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    rows, column = CHOSEN[case]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if column:
        list(read_documents(tmp_path / "a.jsonl"))
        assert f"in the column {column!r}" in capsys.readouterr().out
        assert list(read_documents(tmp_path / "a.jsonl", field=column))
        assert "in the column" not in capsys.readouterr().out
    assert not column or [list(each.sentences()) for each in read_documents(rows)][-1] != []
    for field in [None, "missing"] if not column else ["missing"]:
        with pytest.raises(InputError, match=f"a.jsonl has {', '.join(rows[0])}, .*--field"):
            list(read_documents(tmp_path / "a.jsonl", field=field))


VALUES: list[tuple[Any, list[list[list[str]]]]] = [
    ("a b\r\nc\n\nd\n", [[["a", "b"], ["c"]], [["d"]]]),
    (["a b", "c"], [[["a b", "c"]]]),
    ([["a"], None, ["b", "", "c"]], [[["a"], ["b", "", "c"]]]),
    *(([None, "a", ""][start:], [[["", "a", ""][start:]]]) for start in (0, 1)),
    *((nothing, []) for nothing in ("", " \n", None, 3.5, [], [[]], {"en": "a"}, [["a"], "b"])),
]


def test_the_text_of_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = [document for _, documents in VALUES for document in documents]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": value}) + "\n" for value, _ in VALUES) + '{"n": 1}\n')
    for source in (tmp_path / "a.jsonl", (value for value, _ in [*VALUES, (None, [])]), [{"text": "a"}]):
        documents = list(read_documents(source))
        found = [[words for words in document.sentences() if words] for document in documents]
        assert found == (expected if not isinstance(source, list) else [[["a"]]])
        if not isinstance(source, list):
            assert "9 of 14 rows have no text" in capsys.readouterr().out
    assert list(read_documents([TextDocument("x", ["a"])])) == [TextDocument("x", ["a"])]


TABLES: dict[str, tuple[str, bytes, Any]] = {
    "quoted": ("a.csv", b'n,text\r\n1,"a ""b"", c\r\nd"\r\n\r\n2,e\r\n', [[["a", '"b",', "c"], ["d"]], [["e"]]]),
    "a book": ("a.csv", b"n,text\n1,%s\n" % (b"ab " * 100_000), [[["ab"] * 100_000]]),
    "quoted, of one column": ("a.tsv", b'text\n"a\nb"\n', [[["a"], ["b"]]]),
    "marks that are text": (
        "a.tsv",
        b'text\tn\n"I went\t1\nand came .\t1\nhome ."\t0\n',
        [[['"I', "went"]], [["and", "came", "."]], [["home", '."']]],
    ),
    "an empty cell": ("a.csv", b'text\na\n\n""\n \nb', [[["a"]], [["b"]]]),
    "zero byte": ("a.csv", b"n,text\n1,a\0b\n", [[["a\0b"]]]),
    "too few cells": ("a.csv", b'n,text\n1,"a\nb"\n2\n', "a.csv, line 4: it has 1 cells, the first line 2"),
    "not closed": ("a.csv", b'n,text\n1,"a\n2,b,c\n', "a.csv, line 2 cannot be read"),
    "a mark inside": ("a.csv", b'n,text\n1,"a" b, c\n', "a.csv, line 2 cannot be read"),
    "semicolons": ("a.CSV", b"n;text;m\n1;a, b, c;2\n", [[["a,", "b,", "c"]]]),
    "a pointer": ("a.parquet", b"version https://git-lfs.github.com/spec/v1\n", "a.parquet .Parquet. cannot be"),
    "cut": ("a", b"PAR1\x15\x04", "a .Parquet. cannot be read"),
    "cut zstd": ("a.txt.zst", b"\x28\xb5\x2f\xfd\x04\x58\x11\0\0a b\n", "a.txt.zst cannot be read .*Truncated"),
}


@pytest.mark.parametrize("case", TABLES)
def test_files_of_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    name, content, expected = TABLES[case]
    (tmp_path / name).write_bytes(content)
    if isinstance(expected, str):
        with pytest.raises(InputError, match=f"{tmp_path}/{expected}"):
            list(read_documents(tmp_path / name))
    else:
        assert [list(document.sentences()) for document in read_documents(tmp_path / name)] == expected
        assert ("1 of 3 rows have no text" in capsys.readouterr().out) == (case == "an empty cell")
