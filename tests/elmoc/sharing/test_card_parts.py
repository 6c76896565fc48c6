"""Parts of a card: what was generated is generated anew, what somebody wrote stays."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from elmoc.model_directory import write_model_directory
from elmoc.sharing.card_parts import FRONT, joined_parts, updated_card
from tests.tiny import tiny_model


def exported(folder: Path, **training: object) -> str:
    """The card after an export of a model with this training record."""
    write_model_directory(folder, replace(tiny_model(), training=training))
    return (folder / "README.md").read_text(encoding="utf-8")


def edit(folder: Path, old: str, new: str) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert old in text
    (folder / "README.md").write_text(text.replace(old, new), encoding="utf-8")


def test_an_unchanged_card_is_generated_anew(tmp_path: Path) -> None:
    exported(tmp_path / "model", updates=7)
    assert exported(tmp_path / "model", updates=8) == exported(tmp_path / "fresh", updates=8)


def test_a_card_whose_last_line_has_lost_its_end_is_generated_anew(tmp_path: Path) -> None:
    """As some editors save it."""
    card = exported(tmp_path / "model", updates=7)
    (tmp_path / "model/README.md").write_text(card.removesuffix("\n"), encoding="utf-8")
    assert exported(tmp_path / "model", updates=8) == exported(tmp_path / "fresh", updates=8)


def test_what_was_added_or_changed_stays_and_figures_follow(tmp_path: Path) -> None:
    model = tmp_path / "model"
    exported(model, updates=7)
    edit(model, "for you to say, here and in the block at the top", "CC BY 4.0")
    edit(model, "# license: that of the weights, which is for you to say", "license: cc-by-4.0")
    edit(model, "<!-- elmoc: citation", "## Thanks\n\nTo Ada.\n\n<!-- elmoc: citation")
    card = exported(model, updates=8)
    assert "license: cc-by-4.0" in card
    assert "## Thanks\n\nTo Ada." in card
    assert "weights: CC BY 4.0" in card
    assert "| updates | 8 |" in card
    assert "| updates | 7 |" not in card
    assert exported(model, updates=8) == card


def test_a_part_that_was_taken_out_stays_out(tmp_path: Path) -> None:
    card = exported(tmp_path / "model", updates=7)
    begin = card.index("<!-- elmoc: record")
    edit(tmp_path / "model", card[begin:], "")
    assert "Training record" not in exported(tmp_path / "model", updates=8)


def test_parts_of_another_model_go(tmp_path: Path) -> None:
    assert "## Recipe" in exported(tmp_path / "model", recipe={"train.streams": 7})
    assert "## Recipe" not in exported(tmp_path / "model")


@pytest.mark.parametrize("content", [b"# Mine\n", b"\xff\xfe", b"x" * (2 << 20), b""])
def test_a_card_without_generated_parts_is_its_users(tmp_path: Path, content: bytes) -> None:
    exported(tmp_path / "model")
    (tmp_path / "model/README.md").write_bytes(content)
    write_model_directory(tmp_path / "model", tiny_model())
    assert (tmp_path / "model/README.md").read_bytes() == content


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    exported(tmp_path / "model")
    (tmp_path / "model/README.md").unlink()
    os.mkfifo(tmp_path / "model/README.md")
    assert "# An ELMo-C encoder" in exported(tmp_path / "model")


def test_no_part_ends_within_another(tmp_path: Path) -> None:
    name = "a <!-- elmoc: end -->\n b"
    exported(tmp_path / "model", note=name)
    first = exported(tmp_path / "model", note=name, updates=1)
    assert first == exported(tmp_path / "fresh", note=name, updates=1)
    old, new = ({FRONT: f"a: {each}\n", "x": f"a\n<!-- elmoc: end -->\n{each}\n"} for each in "bc")
    (tmp_path / "README.md").write_text(joined_parts(old), encoding="utf-8")
    assert updated_card(tmp_path / "README.md", new) == joined_parts(new)
