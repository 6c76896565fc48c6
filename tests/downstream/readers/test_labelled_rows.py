"""Labelled rows: the same rows in the forms in which people have them, and rows of another task."""

import csv
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from downstream.tasks import load_task

FILMS = ["Neither good , nor 6 '' bad .", "Dull !", '"It is fun .', "A\nfilm", "Fine ."]
WORDS = ['Neither good , nor 6 " bad .', "Dull !", '" It is fun .', "A film", "Fine ."]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Rows in the form that the name of a file says."""
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pyarrow.parquet = pytest.importorskip("pyarrow.parquet")
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.suffix in (".csv", ".tsv"):
        with open(path, "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, rows[0], delimiter="\t" if path.suffix == ".tsv" else ",")
            table.writeheader()
            table.writerows(rows)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows, indent=1))
    else:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def read(task: str, path: Path) -> tuple[list[Any], list[str]]:
    """The labels that are read, and the sentences."""
    known: Any = load_task(task)
    examples = known.read(path, known.reader, training=True)
    sentences = [" ".join(each.words) for example in examples for each in known.sentences(example)]
    return [example.label for example in examples], sentences


SIGNS = ["positive", "negative"]
FIVE = ["very positive", "Very_Negative", "positive", "neutral", "negative"]
SCORES = [0.81, 0.2, 0.6000000238, 0.59, 0.4000000059604645]


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.parquet", "rows.jsonl", "rows.json.gz", "array.json"])
@pytest.mark.parametrize(
    ("task", "columns", "labels", "expected", "said"),
    [
        ("sst5", "label text", [4, 0, 3, 2, 1], [4, 0, 3, 2, 1], "^$"),
        ("sst5", "sentiment sentence", [4.0, 0.0, 3.0, 2.0, 1.0], [4, 0, 3, 2, 1], "note: .* 4.0 as 4"),
        ("sst5", "Label Sentence", SCORES, [4, 0, 2, 2, 1], "warning: .* none of 3\n.* 0.4000000059604645 as 1"),
        ("sst5", "label_text text", FIVE, [4, 0, 3, 2, 1], "labels are read Very_Negative as 0, negative as 1"),
        ("imdb", "label text", [1, 0, 1, 0, 1], [1, 0, 1, 0, 1], "note: .* labels are read 0 as neg, 1 as pos"),
        ("imdb", "sentiment review", [*SIGNS, *SIGNS, None], [1, 0, 1, 0], "1 row without a gold label"),
        ("imdb", "label text", ["neg", "pos", "neg", "pos", "neg"], [0, 1, 0, 1, 0], "^$"),
        ("snli", "label premise hypothesis", [0, 2, 1], list("ecn"), "0 as entailment, 1 as neutral, 2 as contrad"),
        ("snli", "label premise hypothesis", ["1", "-1", "", "None", "nan"], ["1"], "4 rows without a gold label"),
        ("snli", "label premise hypothesis", ["FAVOR", "NONE", "None"], list("FN"), "1 row without a gold label"),
        ("snli", "label premise hypothesis", [2, 0, -1], ["2", "0"], "warning: .* labels 0, 2 stay numbers, .* spell"),
        ("snli", "gold_label sentence1 sentence2", ["entailment", "contradictory"], list("ec"), "contradictory as con"),
        ("snli", "label_text text1 text2", ["entailment", "contradiction", "neutral"], list("ecn"), "^$"),
    ],
)
def test_rows_of_data_hubs(
    name: str,
    task: str,
    columns: str,
    labels: list[Any],
    expected: list[Any],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = columns.split()
    cells = [(label, *[film] * (len(names) - 1)) for label, film in zip(labels, FILMS, strict=False)]
    path = write(tmp_path / name, [{"idx": 7, **dict(zip(names, row, strict=True))} for row in cells])
    found, sentences = read(task, path)
    assert [label if isinstance(label, int) else label[0] for label in found] == expected
    assert list(dict.fromkeys(sentences)) == WORDS[: len(expected)]
    assert re.search(said, capsys.readouterr().err)


TREE = "(3 (2 It) (3 works))\n"
PAIR = '{"gold_label": "neutral", "sentence1": "a", "sentence2": "b"}\n'
REVIEW = '{"text": "a", "label": "pos"}\n'
DOCUMENT = "#begin document (a)\na 0 0 It (1)\n\n#end document\n"


@pytest.mark.parametrize(
    ("task", "content", "said"),
    [
        *((task, TREE, "line 1 has .3 .2 It.*: (snli|imdb) reads") for task in ("snli", "imdb")),
        ("snli", "premise;hypothesis;label\na, b;c;\n", "no row with a gold label"),
        *((task, PAIR, f"has gold_label, sentence1, sentence2: {task} reads") for task in ("sst5", "imdb")),
        ("snli", REVIEW, "has text, label: snli reads gold_label"),
        *((task, content, "is not between .#begin document") for task, content in (("coref", TREE), ("coref", PAIR))),
        ("srl", "PAR1\0\n", "other is a Parquet file, and lines are wanted"),
        *((task, DOCUMENT, f"has #begin document .a.: {task} reads") for task in ("snli", "sst5", "imdb")),
        ("imdb", "text,label\na,0\nb,1\nc,2\n", "line 2: the label '0' of 0, 1, 2 is not known: imdb reads"),
        ("sst5", "3\tThis works .\n1\tIt is dull .\n", "line 1 has 3, This works .: sst5 reads trees"),
        ("sst5", "text,label\na,4\nb,good\n", "line 3: the label 'good' of 4, good is not known: sst5 reads"),
        ("imdb", "text,label\na,-1\n", "no row with a gold label: imdb reads"),
    ],
)
def test_what_is_of_another_task_is_told_with_what_is_wanted(
    task: str, content: str, said: str, tmp_path: Path, fails: Callable[..., str]
) -> None:
    (tmp_path / "other").write_text(content)
    assert re.search(f"other.*{said}", fails("sentences", task, tmp_path / "other"))
