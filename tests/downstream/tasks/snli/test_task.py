"""The SNLI task: pairs are read whole, learned, and scored by accuracy."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from downstream.tasks.snli.task import TASK, SentencePair

# the label lies in neither sentence alone
TEN_PAIRS = [
    ("entailment", "A man isn't asleep.", "A man is awake."),
    ("contradiction", "A man isn't asleep.", "A man is asleep."),
    ("contradiction", "A man sleeps.", "A man is awake."),
    ("entailment", "A man sleeps.", "A man is asleep."),
    ("neutral", "A dog runs, and a “cat” sleeps.", "A man is asleep."),
    ("neutral", "A dog runs, and a “cat” sleeps.", "A man is awake."),
    ("entailment", "A dog runs, and a “cat” sleeps.", "Run!"),
    ("neutral", "A man sleeps.", "Run!"),
    ("contradiction", "Nobody", "Run!"),
    ("neutral", "Nobody", "somebody"),
]

HEADING = "label\tpremise\thypothesis\n"


def json_lines(pairs: list[tuple[str, str, str]]) -> str:
    rows = ({"gold_label": label, "sentence1": first, "sentence2": second} for label, first, second in pairs)
    return "".join(json.dumps(row) + "\n" for row in rows)


def read(path: Path) -> list[SentencePair]:
    return TASK.read(path, TASK.reader, training=True)


def summary(path: Path) -> list[tuple[str, str, str]]:
    return [(pair.label, " ".join(pair.premise.words), " ".join(pair.hypothesis.words)) for pair in read(path)]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A file of ten pairs."""
    return written(tmp_path / "ten.jsonl", json_lines(TEN_PAIRS))


def test_snli_json_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = json_lines(
        [
            ("-", "No label", "here."),
            ("neutral", "He can't; he said “no”.", "It's (maybe) 5% of -LRB-."),
            ("-", "x", "y"),
            ("-", "x", ""),
            ("entailment", "A b c .", "`` D ''"),
            ("-", "x", "y"),
        ]
    ).splitlines(keepends=True)
    lines[1] = lines[1].replace("{", '{"annotator_labels": ["neutral"], "pairID": "1n", "sentence1_parse": "(ROOT )", ')
    path = tmp_path / "snli.jsonl.gz"
    path.write_bytes(gzip.compress(("".join(lines) + "\n").encode()))
    examples = read(path)
    assert summary(path) == [
        ("neutral", 'He ca n\'t ; he said " no " .', "It 's ( maybe ) 5 % of ( ."),
        ("entailment", "A b c .", '" D "'),
    ]
    assert [pair.premise.line for pair in examples] == [2, 5]
    assert {pair.hypothesis.file for pair in examples} == {str(path)}
    assert examples[0].texts == ["He can't; he said “no”.", "It's (maybe) 5% of -LRB-."]
    assert "4 rows without a gold label" in capsys.readouterr().err
    assert [sentence.words[0] for sentence in TASK.sentences(examples[1])] == ["A", '"']


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ('{"gold_label": "neutral", "sentence1": "a", "sentence2": "b"\n', ", line 1"),
        (json_lines(TEN_PAIRS[:1]) + "[1]\n", ", line 2"),
        ('{"gold_label": "x", "sentence1": "a", "sentence2": 3}\n', ", line 1"),
        ('{"gold_label": "x", "sentence1": "a \\ud83d b", "sentence2": "c"}\n', ", line 1"),
        (json_lines([*TEN_PAIRS[:2], ("neutral", "a", " ")]), ", line 3"),
        ("sentence1\tsentence2\tlabel\na\tb\tneutral\n\tb\tneutral\n", ", line 3"),
        ("sentence1\tsentence2\tlabel\na\tb\tc\td\n", ", line 2"),
        ("neutral\ta\tb\nneutral\ta\tc\n", ", line 1"),
        ("first\tsecond\tlabel\na\tb\tneutral\n", ", line 1"),
        ("yes, he did, or not\n", ", line 1"),
        ("premise,hypothesis,label\na,b,neutral\na,b, c,neutral\n", ", line 3"),
        ("A man sleeps .\tHe is awake .\tneutral\n", ", line 1"),
    ],
)
def test_bad_input(tmp_path: Path, fails: Callable[..., str], text: str, line: str) -> None:
    path = written(tmp_path / "bad", text)
    assert f"{path}{line}" in fails("sentences", "snli", path)


def test_labels_are_those_of_snli_or_else_those_of_the_training_data(tmp_path: Path) -> None:
    def labels(*found: str) -> list[str]:
        path = written(tmp_path / "pairs.tsv", HEADING + "".join(f"{label}\ta\tb\n" for label in found))
        return TASK.vocabulary(read(path))["labels"]

    assert labels("contradiction", "entailment") == ["entailment", "neutral", "contradiction"]
    assert labels("not_entailment", "entailment") == ["entailment", "not_entailment"]
    assert labels("1", "0", "1") == ["0", "1"], "as of RTE"
    assert labels("1", "0", "2", "1") == ["entailment", "neutral", "contradiction"], "as data hubs number them"


def test_accuracy_worked_by_hand(tmp_path: Path, pairs: Path) -> None:
    examples = read(pairs)[:5]  # entailment, contradiction, contradiction, entailment, neutral
    predictions = [
        dict(zip(("entailment", "neutral", "contradiction"), row, strict=True))
        for row in ([0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4], [0.4, 0.4, 0.2], [0.0, 0.2, 0.8])
    ]
    counts = [TASK.count(*both) for both in zip(examples, predictions, strict=True)]
    assert [row.tolist() for row in counts] == [[1, 1], [0, 1], [1, 1], [1, 1], [0, 1]], "of equals, the first"
    assert TASK.metrics(sum(counts))["accuracy"] == pytest.approx(60)
    TASK.write_predictions(tmp_path / "out.jsonl", examples, predictions)
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert records[1] == {
        "gold_label": "contradiction",
        "predicted_label": "neutral",
        "probabilities": {"entailment": 0.2, "neutral": 0.5, "contradiction": 0.3},
        "sentence1": "A man isn't asleep.",
        "sentence2": "A man is asleep.",
    }
    assert summary(tmp_path / "out.jsonl") == summary(pairs)[:5], "predictions can be read as data"
