"""Tagged sentences as rows: read from every file of data hubs, and damage named with its row."""

import json
from pathlib import Path
from typing import Any

import pytest
from downstream.tasks.ner.task import TASK, NerReaderOptions
from elmoc.errors import InputError

WORDS = [["Bo", "met", "Al", "Xu"], ["Rain"], []]
NUMBERS = [[2, 0, 1, 1], [0], []]
TAGS = [["I-PER", "O", "B-PER", "B-PER"], ["O"], []]
NAMES = ["O", "B-PER", "I-PER"]
# as `datasets` writes them
SEQUENCE = {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "Sequence"}
OTHER = {"feature": {"names": ["O", "B-X"]}}


def rows(words_key: str, tags_key: str, tags: list[Any]) -> list[dict[str, Any]]:
    pairs = zip(WORDS, tags, strict=True)
    return [{"id": "7", words_key: words, tags_key: own, "pos_tags": [9] * len(own)} for words, own in pairs]


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def read(path: Path, **options: Any) -> tuple[str, str]:
    examples = TASK.read(path, NerReaderOptions(**options), training=True)
    words = " | ".join(" ".join(each.sentence.words) for each in examples)
    return words, " | ".join(" ".join(each.tags) for each in examples)


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("a.jsonl", lines(rows("words", "labels", TAGS)), {}),
        ("a", lines(rows("tokens", "ner_tags", NUMBERS)), {"tag_names": "O, B-PER, I-PER"}),
        ("a.json", "\ufeff" + json.dumps(rows("tokens", "tags", TAGS), indent=2), {}),
        ("a", lines(rows("tokens", "tags", [["2", "0", "1", "1"], ["0"], []])), {"tag_names": ",".join(NAMES)}),
        ("a.json", json.dumps(rows("tokens", "Tags", NUMBERS)), {"tag_names": ",".join(NAMES)}),
    ],
)
def test_rows_of_data_hubs(tmp_path: Path, name: str, text: str, options: dict[str, Any]) -> None:
    (tmp_path / name).write_text(text)
    assert read(tmp_path / name, **options) == ("Bo met Al Xu | Rain", "B-PER O B-PER B-PER | O")


def test_parquet_has_the_names_of_its_numbers(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.Table.from_pylist(rows("tokens", "ner_tags", NUMBERS))
    described = {"huggingface": json.dumps({"info": {"features": {"ner_tags": SEQUENCE, "pos_tags": OTHER}}})}
    parquet.write_table(table.replace_schema_metadata(described), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == ("Bo met Al Xu | Rain", "B-PER O B-PER B-PER | O")
    other = {"huggingface": json.dumps({"info": {"features": {"ner_tags": [OTHER]}}})}
    parquet.write_table(table.replace_schema_metadata(other), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b.parquet, line 1: tags are numbers \(2\), .*--tag-names"):
        read(tmp_path / "b.parquet")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"tokens": ["a"], "ner_tags": [1]}', "a, line 1: tags are numbers .1., .* Parquet.*, or --tag-names"),
        ('{"tokens": ["a", "b"], "tags": [2, -100]}', "line 1: tags are numbers .2.,.* names none"),
        ('{"tokens": ["a"], "tags": ["O"]}\n{"tokens": ["a", "b"], "tags": ["O"]}', "line 2 cannot be read"),
        ('{"tokens": ["a"], "tags": ["O"]}\n{"tokens": ["a"]}', "line 2: tokens and tags are needed"),
        ('{"text": "Bo met Al", "entities": [[0, 2, "PER"]]}', "a, line 1 has text, entities: ner reads"),
        ('{"tokens": ["a", null], "tags": ["O", "O"]}', "a, line 1.*`str`, got `null`"),
        ('{"tokens": ["a"], "tags": ["O", "O"]', "a, line 1 cannot be read"),
        ('[{"tokens": ["a"], "tags": ["O"]}', "a cannot be read .*JSON|a cannot be read .*truncated"),
        ('[{"tokens": [], "tags": []}]', "a holds no rows with words"),
        ('{"tokens": ["a", "b"], "tags": ["O", "_"]}', "a, line 1: '_' is no tag"),
    ],
)
def test_rows_that_cannot_be_read(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(InputError, match=said):
        read(tmp_path / "a")


def test_numbers_without_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").write_text('{"tokens": ["a", "b"], "tags": [2, -100]}')
    with pytest.raises(InputError, match=r"line 1: tags are numbers .-100.,.* names 3"):
        read(tmp_path / "a", tag_names="O,B-PER,I-PER", column=2)
    assert "a has rows: --column and --word-column are not for it" in capsys.readouterr().err
