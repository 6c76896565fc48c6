"""Model cards: what they say of a model, and that hubs can read the block at their top."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from elmoc.model_directory import ModelDirectory, write_model_directory
from elmoc.sharing.model_card import model_card
from tests.tiny import tiny_model

yaml = pytest.importorskip("yaml", reason="PyYAML comes with huggingface_hub")
RECORD = {
    "corpus": "/home/ada/corpora/café",
    "sources": ["/home/ada/a|b.txt", "news.txt.gz"],
    "corpus_tokens": 1234567,
    "words": 7000,
    "updates": 70,
    "learning_rate": 1e-3,
    "held_out": {"cosine": 0.41237, "constant_cosine": 0.2, "accuracy_at_10": 0.5, "forward_cosine": 0.4},
}


def card_of(model: ModelDirectory | None = None, **training: object) -> str:
    model = model or tiny_model()
    return model_card(training, encoder=model.encoder, word_vectors=model.word_vectors, output_layer="continuous")


def test_hubs_can_read_it(tmp_path: Path) -> None:
    write_model_directory(tmp_path / "model", replace(tiny_model(), training=RECORD))
    text = (tmp_path / "model/README.md").read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    assert yaml.safe_load(front) == {
        "library_name": "elmoc",
        "pipeline_tag": "feature-extraction",
        "tags": ["elmo", "contextual-word-representations"],
    }
    assert body.startswith("\n# An ELMo-C encoder\n")


def test_it_says_what_the_model_is_and_how_it_was_trained() -> None:
    model = tiny_model()
    card = card_of(model, **RECORD)
    parameters = sum(each.numel() for each in model.encoder.parameters())
    assert "/home/ada" not in card, "which nobody else need know"
    for line in (
        "| encoder | 2 LSTM layers, projection 5, cell 7, forward and backward |",
        f"| parameters of the encoder | {parameters:,} |",
        "| layer states | 3 layers, 10 wide; layer 0 is context-independent |",
        "| word vectors | `random:3:6`, 6 wide, fingerprint random:3:6 |",
        "| corpus | `café` |",
        "| text | `a b.txt`, `news.txt.gz` |",
        "| words read in training | 7,000 |",
        "| cosine with the true next word | 0.4124 | 0.2 |",
        "| accuracy@10 | 0.5 | – |",
        "elmoc dump-features DIRECTORY sentences.txt features.h5",
    ):
        assert line in card.splitlines()
    assert "Li, Liunian Harold and Chen, Patrick H." in card
    assert "The word vectors are needed" not in card, "random ones are in every release"
    model.word_vectors = replace(model.word_vectors, origin="/somewhere/words.bin")
    assert "The word vectors are needed" in card_of(model, **RECORD)
    assert "`words.bin`" in card_of(model, **RECORD)


def test_an_imported_model_is_cited_as_elmo() -> None:
    record = {"imported": {"from": "bilm-tf"}}
    card = card_of(**record)
    assert "# An ELMo model, imported from another tool" in card
    assert "## Training\n" not in card
    assert "Peters" in card
    assert "Liunian" not in card
    further = card_of(updates=7, started_from=record)
    assert "this is known:\n\nIt was imported from another tool: `bilm-tf`\n" in further


def test_the_recipe_is_a_config_file() -> None:
    recipe = {"data.sources": {"late": 2.0, "no-3": 0}, "train.streams": 8, "train.directions": ["forward"]}
    card = card_of(recipe=recipe, held_out={"cosine": 0.3, "late/cosine": 0.3})
    shown = card.split("```toml\n")[1].split("```")[0]
    assert tomllib.loads(shown) == {
        "data": {"sources": {"late": 2.0, "no-3": 0}},
        "train": {"streams": 8, "directions": ["forward"]},
    }
    assert "of the kind" not in card, "what is of one kind alone is said once"


def test_an_adapted_model_says_what_each_kind_of_text_gave() -> None:
    held_out = {"cosine": 0.3, "new/cosine": 0.4, "new/constant_cosine": 0.1, "general/cosine": 0.2}
    record = {"name": "Ada's `model`", "licence": "CC BY 4.0", "updates": 7, "held_out": held_out}
    card = card_of(**record, tokens_by_source={"new": 1000, "general": 20}, started_from=RECORD)
    for line in (
        "# Ada's model",
        "| `new` | 1,000 |",
        "On held-out text of the kind `new`:",
        "| cosine with the true next word | 0.4 | 0.1 |",
        "| cosine with the true next word | 0.2 | – |",
        "It went on from a model of which this is known:",
        "| words read in training | 7,000 |",
        "| licence of the new text | CC BY 4.0 |",
        "| licence of the text | not stated |",
    ):
        assert line in card.splitlines()
