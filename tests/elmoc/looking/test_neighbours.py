"""Neighbours of a use: ordered by cosine, and printed by `elmoc neighbours`."""

from pathlib import Path

import pytest
import torch
from elmoc.__main__ import main
from elmoc.looking.uses import Use, find_uses, nearest_uses

from elmoc import ElmoC

TEXT = "\n".join(f"The {kind} bank of the {name} ." for kind in ("left", "right", "red") for name in ("a", "b", "c"))


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text(TEXT + "\n")
    return tmp_path / "text.txt"


def test_they_are_ordered_by_cosine(text: Path, model_path: Path) -> None:
    elmo = ElmoC.from_pretrained(model_path)
    query, (uses, _) = Use(("on", "the", "left", "bank"), 3), find_uses(text, "bank")
    nearest = nearest_uses(elmo, query, uses, top=4, layer="average")
    vector = elmo.embed(query.tokens).mean(0)[3]
    cosines = {
        use: float(torch.cosine_similarity(vector, elmo.embed(use.tokens).mean(0)[use.position], dim=0)) for use in uses
    }
    assert [use for use, _ in nearest] == sorted(uses, key=lambda use: -cosines[use])[:4]
    for use, cosine in nearest:
        assert cosine == pytest.approx(cosines[use], abs=1e-5)


def test_the_command_marks_the_word(text: Path, model_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--word", "bank", "--in", "The left bank of the a .", "--top", "2"]
    assert main(["neighbours", str(model_path), "text.txt", *words]) == 0
    first, _, head, best, second = capsys.readouterr().out.splitlines()
    assert first == "9 uses of 'bank', 9 of them read; nearest to: The left [bank] of the a ."
    assert head.split() == ["cosine", "line", "use"]
    assert best == " 1.000         1  The left [bank] of the a ."
    assert "[bank]" in second


def test_which_of_several_counts(text: Path, model_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, marked in (([], "a Bank is a [bank]"), (["--ignore-case"], "a [Bank] is a bank")):
        words = ["--word", "bank", "--in", "a Bank is a bank", *options]
        assert main(["neighbours", str(model_path), "text.txt", *words]) == 0
        assert capsys.readouterr().out.splitlines()[0].endswith(f"nearest to: {marked}")
