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
    assert '"corpus": "café"' in card
    for line in (
        "| encoder | 2 LSTM layers, projection 5, cell 7, forward and backward |",
        f"| parameters of the encoder | {parameters:,} |",
        "| layer states | 3 layers, 10 wide; layer 0 is context-independent |",
        "| word vectors | `random:3:6`, 6 wide, fingerprint random:3:6 |",
        "| corpus | `café` |",
        "| text | `a b.txt`, `news.txt.gz` |",
        "| words read in training | 7,000 |",
        "| base learning rate | 0.001 |",
        "| cosine with the true next word | 0.4124 | 0.2 |",
        "| accuracy@10 | 0.5 | – |",
        "elmoc dump-features DIRECTORY sentences.txt features.h5",
    ):
        assert line in card.splitlines()
    assert "Li, Liunian Harold and Chen, Patrick H." in card
    assert "- Licence of the text it was trained on: not stated" in card.splitlines()
    assert "The word vectors are needed" not in card, "random ones are in every release"
    model.word_vectors = replace(model.word_vectors, origin="/somewhere/words.bin")
    assert "The word vectors are needed" in card_of(model, **RECORD)
    assert "`words.bin`" in card_of(model, **RECORD)


def test_directions_that_were_trained_apart_have_their_own_figures() -> None:
    card = card_of(forward=RECORD, backward=RECORD | {"updates": 71})
    assert card.index("The forward direction:") < card.index("| updates | 70 |")
    assert card.index("| updates | 70 |") < card.index("The backward direction:") < card.index("| updates | 71 |")


def test_what_each_direction_went_on_from_is_said() -> None:
    parts = {name: {"updates": 7, "started_from": RECORD | {"updates": 60}} for name in ("forward", "backward")}
    lines = card_of(**parts).partition("## Licence")[0].splitlines()
    assert lines.count("It went on from a model of which this is known:") == 2
    assert lines.count("| updates | 60 |") == 2
    assert lines.index("| updates | 60 |") < lines.index("The backward direction:")


def test_an_imported_model_that_was_gone_on_from_is_named() -> None:
    record = {"imported": {"from": "bilm-tf or AllenNLP", "options": {}}}
    card = card_of(updates=7, started_from=record)
    assert "this is known:\n\nIt was imported from another tool: `bilm-tf or AllenNLP`\n" in card
    assert "this is known: nothing." in card_of(updates=7, started_from={})


def test_an_imported_model_is_cited_as_elmo() -> None:
    card = card_of(imported={"tool": "bilm-tf"})
    assert "# An ELMo model, imported from another tool" in card
    assert "## Training\n" not in card
    assert "Peters" in card
    assert "Liunian" not in card
    assert "@software{elmoc," in card
    assert '"tool": "bilm-tf"' in card


@pytest.mark.parametrize("training", [{}, {"held_out": 3, "forward": 1}, {"words": None, "sources": []}])
def test_any_record_makes_a_card(training: dict[str, object]) -> None:
    assert "## Training record" in card_of(**training)


def test_the_recipe_is_a_config_file() -> None:
    recipe = {"data.sources": {"late": 2.0, "no-3": 0}, "train.streams": 8, "train.directions": ["forward"]}
    card = card_of(recipe=recipe, held_out={"cosine": 0.3, "late/cosine": 0.3})
    shown = card.split("```toml\n")[1].split("```")[0]
    assert tomllib.loads(shown) == {
        "data": {"sources": {"late": 2.0, "no-3": 0}},
        "train": {"streams": 8, "directions": ["forward"]},
    }
    assert "of the kind" not in card, "what is of one kind alone is said once"


def test_it_says_what_each_kind_of_text_gave_and_what_it_went_on_from() -> None:
    held_out = {"cosine": 0.3, "new/cosine": 0.4, "new/constant_cosine": 0.1, "general/cosine": 0.2}
    record = {"name": "Ada's `model`", "licence": "CC BY 4.0", "held_out": held_out}
    sizes = {"tokens_by_source": {"new": 1000, "general": 20}, "recipe": {"train.streams": 8, "train.device": "cpu"}}
    card = card_of(**record, **sizes, started_from=RECORD)
    for line in (
        "# Ada's model",
        "| `new` | 1,000 |",
        "On held-out text of the kind `new`:",
        "| cosine with the true next word | 0.4 | 0.1 |",
        "| cosine with the true next word | 0.2 | – |",
        "It went on from a model of which this is known:",
        "| words read in training | 7,000 |",
        "- Licence of the new text it was trained on: CC BY 4.0",
        "- Licence of the earlier text it was trained on: not stated",
        'device = "cpu"',
    ):
        assert line in card.splitlines()
    joined = card_of(forward=record, backward={**record, "licence": "CC0"})
    assert "it was trained on: CC BY 4.0" in joined
    assert "it was trained on: CC0" in joined


def test_the_licence_of_an_adaptation_is_that_of_its_new_text() -> None:
    """General text, of another corpus, has another."""
    adapted = {"licence": "CC BY 4.0", "tokens_by_source": {"new": 9, "general": 8}, "started_from": RECORD}
    again = {"licence": "CC0", "tokens_by_source": {"new": 9}, "started_from": adapted}
    own = {"licence": "MIT", "tokens_by_source": {"general": 8}}

    def licences(record: dict[str, object]) -> list[str]:
        return [line for line in card_of(**record).splitlines() if line.startswith("- Licence of the ")][:-1]

    earlier = "- Licence of the earlier text it was trained on: not stated"
    assert licences(adapted) == ["- Licence of the new text it was trained on: CC BY 4.0", earlier]
    assert licences(again) == [
        "- Licence of the text it was trained on: CC0",
        "- Licence of the new text of an earlier training: CC BY 4.0",
        earlier,
    ]
    assert licences(own) == ["- Licence of the text it was trained on: MIT"], "it was named so by its user"
