"""Training records: words and corpora of all trainings of a model."""

from typing import Any

import pytest

from elmoc.sharing.training_record import training_words, trainings_of

BASE = {"words": 54_000, "corpus": "base", "tokens_by_source": {"words": 10**9, "novels": 7}}
TASK = {"words": 2_000, "corpus": "task", "started_from": BASE}


@pytest.mark.parametrize(
    ("record", "words", "corpora"),
    [
        ({}, None, [None]),
        (BASE, 54_000, ["base"]),
        (TASK, 56_000, ["task", "base"]),
        ({"words": 500, "corpus": "base", "started_from": TASK}, 56_500, ["base", "task"]),
        ({"words": 0, "corpus": "task", "started_from": BASE}, 54_000, ["task", "base"]),
        ({"forward": BASE, "backward": TASK}, 56_000, ["base", "task"]),
        (
            {"words": 1_000, "corpus": "task", "started_from": {"forward": BASE, "backward": BASE}},
            55_000,
            ["task", "base"],
        ),
        ({"forward": BASE, "backward": {}}, None, ["base", None]),
        ({"words": 2_000, "corpus": "task", "started_from": {"imported": {}}}, None, ["task", None]),
        ({"words": 110, "units_of_a_word": 1.1, "corpus": "units"}, 100, ["units"]),
    ],
)
def test_trainings_before_count(record: dict[str, Any], words: int | None, corpora: list[str | None]) -> None:
    assert training_words(record) == words
    assert list(dict.fromkeys(each.get("corpus") for each in trainings_of(record))) == corpora
