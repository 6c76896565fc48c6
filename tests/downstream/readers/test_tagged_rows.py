"""Tagged sentences as rows: read from every file of data hubs, and damage named with its row."""

import json
from pathlib import Path
from typing import Any

import pytest
from downstream.probe.splits import read_splits
from downstream.readers.tagged_rows import FEATURES
from downstream.tasks.ner.task import TASK, NerReaderOptions
from elmoc.errors import InputError

WORDS = [["Bo", "met", "Al", "Xu"], ["Rain"], []]
NUMBERS = [[2, 0, 1, 1], [0], []]
TAGS = [["I-PER", "O", "B-PER", "B-PER"], ["O"], []]
NAMES = ["O", "B-PER", "I-PER"]
# as `datasets` writes them, of two versions
SEQUENCE = {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "Sequence"}
OLD = [{"num_classes": 3, "names": NAMES, "_type": "ClassLabel"}]
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
    ("name", "text", "features", "options"),
    [
        ("a.jsonl", lines(rows("words", "labels", TAGS)), {}, {}),
        ("a", lines(rows("tokens", "ner_tags", NUMBERS)), {}, {"tag_names": "O, B-PER, I-PER"}),
        ("a.json", "\ufeff" + json.dumps(rows("tokens", "tags", TAGS), indent=2), {}, {}),
        ("a", lines(rows("tokens", "tags", [["2", "0", "1", "1"], ["0"], []])), {FEATURES[0]: {"tags": SEQUENCE}}, {}),
        ("a.json", json.dumps(rows("tokens", "ner_tags", NUMBERS)), {FEATURES[0]: {"ner_tags": SEQUENCE}}, {}),
        ("a.jsonl", lines(rows("tokens", "tags", NUMBERS)), {FEATURES[1]: {"v1": {"features": {"tags": OLD}}}}, {}),
        ("a.jsonl", lines(rows("tokens", "Tags", NUMBERS)), {FEATURES[0]: {"Tags": SEQUENCE, "labels": OTHER}}, {}),
    ],
)  # fmt: skip
def test_rows_of_data_hubs(
    tmp_path: Path, name: str, text: str, features: dict[str, Any], options: dict[str, Any]
) -> None:
    (tmp_path / name).write_text(text)
    for file, content in features.items():
        (tmp_path / file).write_text(json.dumps(content))
    assert read(tmp_path / name, **options) == ("Bo met Al Xu | Rain", "B-PER O B-PER B-PER | O")


def test_other_names_beside_a_file_are_other_data(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines(rows("tokens", "tags", NUMBERS)))
    found = []
    for names in (["O", "B-PER", "I-PER"], ["O", "B-LOC", "I-LOC"]):
        (tmp_path / FEATURES[0]).write_text(json.dumps({"tags": {"names": names}}))
        (split,) = read_splits(TASK, {"train": [tmp_path / "a.jsonl"]}, NerReaderOptions())
        found += split.fingerprints
    assert len(set(found)) == 2


def test_parquet_has_the_names_of_its_numbers(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.Table.from_pylist(rows("tokens", "ner_tags", NUMBERS))
    described = {"huggingface": json.dumps({"info": {"features": {"ner_tags": SEQUENCE, "pos_tags": OTHER}}})}
    parquet.write_table(table.replace_schema_metadata(described), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == ("Bo met Al Xu | Rain", "B-PER O B-PER B-PER | O")
    parquet.write_table(table, tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b.parquet, line 1: tags are numbers \(2\), .*--tag-names"):
        read(tmp_path / "b.parquet")


@pytest.mark.parametrize(
    ("text", "features", "said"),
    [
        ('{"tokens": ["a"], "ner_tags": [1]}', {}, "a, line 1: tags are numbers .1., .* JSON .*--tag-names"),
        ('{"tokens": ["a", "b"], "tags": [2, -100]}', {"tags": SEQUENCE}, "line 1: tags are numbers .-100.,.* names 3"),
        ('{"tokens": ["a", "b"], "tags": ["0", "3"]}', {"tags": SEQUENCE}, "a, line 1: tags are numbers .3."),
        ('{"tokens": ["a"], "tags": [1]}', {"labels": OTHER}, "line 1: tags are numbers .1."),
        ('{"tokens": ["a"], "tags": [1]}', {"x": {"tags": SEQUENCE}, "y": {"tags": OTHER}}, "line 1: tags are"),
        ('{"tokens": ["a"], "tags": ["O"]}\n{"tokens": ["a", "b"], "tags": ["O"]}', {}, "line 2 cannot be read"),
        ('{"tokens": ["a"], "tags": ["O"]}\n{"tokens": ["a"]}', {}, "line 2: tokens and tags are needed"),
        ('{"text": "Bo met Al", "entities": [[0, 2, "PER"]]}', {}, "a, line 1 has text, entities: ner reads"),
        ('{"tokens": ["a", null], "tags": ["O", "O"]}', {}, "a, line 1.*`str`, got `null`"),
        ('{"tokens": ["a"], "tags": ["O", "O"]', {}, "a, line 1 cannot be read"),
        ('[{"tokens": ["a"], "tags": ["O"]}', {}, "a cannot be read .*JSON|a cannot be read .*truncated"),
        ('[{"tokens": [], "tags": []}]', {}, "a holds no rows with words"),
        ('{"tokens": ["a", "b"], "tags": ["O", "_"]}', {}, "a, line 1: '_' is no tag"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_read(tmp_path: Path, text: str, features: dict[str, Any], said: str) -> None:
    (tmp_path / "a").write_text(text)
    (tmp_path / "features.json").write_text(json.dumps(features))
    with pytest.raises(InputError, match=said):
        read(tmp_path / "a")
