"""Model cards: what they know of a model and of its trainings, and that hubs can read the block at their top."""

from dataclasses import replace
from typing import Any

import pytest
from elmoc.sharing.model_card import model_card
from elmoc.sharing.trainings import training_words, trainings_of
from tests.tiny import tiny_model

yaml = pytest.importorskip("yaml", reason="PyYAML comes with huggingface_hub")
RECORD = {
    "corpus": "/home/ada/corpora/café",
    "sources": ["/home/ada/a|b.txt", "news.txt.gz"],
    "words": 7000,
    "held_out": {"cosine": 0.41237, "constant_cosine": 0.2, "accuracy_at_10": 0.5},
}


def card_of(origin: str = "random:3:6", **training: object) -> str:
    model = tiny_model()
    vectors = replace(model.word_vectors, origin=origin)
    return model_card(training, encoder=model.encoder, word_vectors=vectors, output_layer="continuous")


def test_it_says_what_the_model_is_and_how_it_was_trained() -> None:
    card = card_of("/somewhere/words.bin", **RECORD)
    _, front, body = card.split("---\n", 2)
    assert yaml.safe_load(front).keys() == {"library_name", "pipeline_tag", "tags"}
    for told in (
        "projection 5, cell 7",
        "`words.bin`",
        "`café`",
        "`a b.txt`, `news.txt.gz`",
        "7,000",
        "0.4124 | 0.2 |",
    ):
        assert told in body
    assert "/home/ada" not in card, "which nobody else need know"


def test_an_imported_model_is_cited_as_elmo() -> None:
    record = {"imported": {"from": "bilm-tf"}}
    card, further = card_of(**record), card_of(updates=7, started_from=record)
    assert "Li et al." not in card
    assert "Li et al." in further
    assert "`bilm-tf`" in further


def test_an_adapted_model_says_what_each_kind_of_text_gave() -> None:
    held_out = {"cosine": 0.3, "new/cosine": 0.4, "new/constant_cosine": 0.1, "general/cosine": 0.25}
    record = {"name": "Ada's `model`", "licence": "CC BY 4.0", "updates": 7, "held_out": held_out}
    card = card_of(**record, tokens_by_source={"new": 1000, "general": 20}, started_from=RECORD)
    for told in ("# Ada's model", "| `new` | 1,000 |", "| 0.4 | 0.1 |", "| 0.25 | – |", "7,000", "CC BY 4.0"):
        assert told in card


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
        ({"words": 2_000, "corpus": "task", "started_from": {"imported": {}}}, None, ["task", None]),
        ({"words": 110, "units_of_a_word": 1.1, "corpus": "units"}, 100, ["units"]),
    ],
)
def test_trainings_before_count(record: dict[str, Any], words: int | None, corpora: list[str | None]) -> None:
    assert training_words(record) == words
    assert list(dict.fromkeys(each.get("corpus") for each in trainings_of(record))) == corpora
