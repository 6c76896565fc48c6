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


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.parquet", "rows.jsonl", "rows.json.gz"])
@pytest.mark.parametrize(
    ("task", "columns", "labels", "expected", "said"),
    [
        ("sst5", "text label", [4, 0, 3, 2, 1], [4, 0, 3, 2, 1], "^$"),
        ("sst5", "sentence sentiment", [4.0, 0.0, 3.0, 2.0, 1.0], [4, 0, 3, 2, 1], "note: .* 4.0 as 4"),
        (
            "sst5",
            "Sentence Label",
            [0.81, 0.2, 0.6000000238, 0.59, 0.4000000059604645],
            [4, 0, 2, 2, 1],
            "warning.* 3$",
        ),
        (
            *("sst5", "text label_text", ["very positive", "Very_Negative", "positive", "neutral", "negative"]),
            *([4, 0, 3, 2, 1], "labels are read Very_Negative as 0, negative as 1, neutral as 2"),
        ),
        ("imdb", "text label", [1, 0, 1, 0, 1], [1, 0, 1, 0, 1], "note: .* labels are read 0 as neg, 1 as pos"),
        ("imdb", "review sentiment", ["positive", "negative"] * 2 + [None], [1, 0, 1, 0], "1 row without a gold label"),
        ("imdb", "text label", ["neg", "pos", "neg", "pos", "neg"], [0, 1, 0, 1, 0], "^$"),
    ],
)
def test_texts_of_data_hubs(
    *,
    name: str,
    task: str,
    columns: str,
    labels: list[Any],
    expected: list[int],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, label = columns.split()
    rows = [{"idx": 7, text: film, label: each} for film, each in zip(FILMS, labels, strict=True)]
    path = write(tmp_path / name, rows)
    assert read(task, path) == (expected, WORDS[: len(expected)])
    assert re.search(said, capsys.readouterr().err.replace(f"{tmp_path}/", ""), re.MULTILINE)


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.parquet", "rows.jsonl"])
@pytest.mark.parametrize(
    ("columns", "labels", "said"),
    [
        ("premise hypothesis label", [0, 2, 1], "0 as entailment, 1 as neutral, 2 as contradiction"),
        (
            "sentence1 sentence2 gold_label",
            ["entailment", "contradictory", "neutral"],
            "contradictory as contradiction$",
        ),
        ("text1 text2 label_text", ["entailment", "contradiction", "neutral"], "^$"),
    ],
)
def test_pairs_of_data_hubs(
    name: str, columns: str, labels: list[Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [dict(zip(columns.split(), (FILMS[2 * i], FILMS[i], each), strict=True)) for i, each in enumerate(labels)]
    found, sentences = read("snli", write(tmp_path / name, rows))
    assert found == ["entailment", "contradiction", "neutral"]
    assert sentences == [WORDS[i] for i in (0, 0, 2, 1, 4, 2)]
    assert re.search(said, capsys.readouterr().err)


@pytest.mark.parametrize(
    "text",
    ["4\tWell , fine .\n0\tBad .\n", 'Fine .,"3"\nBad .,1\n', "Fine .\tpositive\nBad .\tnegative\nSo so .\tneutral\n"],
)
def test_a_table_of_two_columns_needs_no_names(text: str, tmp_path: Path) -> None:
    (tmp_path / "table").write_text(text)
    labels, sentences = read("sst5", tmp_path / "table")
    assert labels in ([4, 0], [3, 1], [3, 1, 2])
    assert sentences[1] == "Bad ."


TREE = "(3 (2 It) (3 works))\n"
PAIR = '{"gold_label": "neutral", "sentence1": "a", "sentence2": "b"}\n'
REVIEW = '{"text": "a", "label": "pos"}\n'
DOCUMENT = "#begin document (a)\na 0 0 It (1)\n\n#end document\n"


@pytest.mark.parametrize(
    ("task", "content", "said"),
    [
        *((task, TREE, "line 1 has .3 .2 It.*: (snli|imdb) reads") for task in ("snli", "imdb")),
        *((task, PAIR, f"has gold_label, sentence1, sentence2: {task} reads") for task in ("sst5", "imdb")),
        ("snli", REVIEW, "has text, label: snli reads gold_label"),
        *((task, content, "coref reads CoNLL-2012 columns") for task, content in (("coref", TREE), ("coref", PAIR))),
        *((task, DOCUMENT, f"has #begin document .a.: {task} reads") for task in ("snli", "sst5", "imdb")),
        ("sst5", "sentence\tlabel\na\t0\nb\t1\n", "the labels 0, 1, as imdb has them: sst5 reads trees"),
        ("sst5", REVIEW.replace("pos", "positive") + REVIEW.replace("pos", "negative"), "negative, positive, as imdb"),
        ("imdb", "text,label\na,0\nb,1\nc,2\nd,3\ne,4\n", "the labels 0, 1, 2, 3, 4, as sst5 has them"),
        ("sst5", "text,label\na,4\nb,good\n", "line 3: the label 'good' is not known: sst5 reads"),
        ("imdb", "text,label\na,-1\n", "no row with a gold label: imdb reads"),
    ],
)
def test_what_is_of_another_task_is_told_with_what_is_wanted(
    task: str, content: str, said: str, tmp_path: Path, fails: Callable[..., str]
) -> None:
    (tmp_path / "other").write_text(content)
    assert re.search(f"other.*{said}", fails("sentences", task, tmp_path / "other"))
