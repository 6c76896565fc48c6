"""The command `sentences`: the sentences of a task, as `elmoc dump-features` takes them."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from downstream.__main__ import main


def test_a_task_that_is_not_there_is_named(ten: Path, fails: Callable[..., str]) -> None:
    assert "'parse'" in fails("sentences", "parse", ten)


def test_sentences_are_utf8_whatever_the_terminal_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.conll").write_text("Zoë\tB-PER\n中\tO\n", encoding="utf-8")
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["sentences", "ner", str(tmp_path / "a.conll")]) == 0
    assert terminal.buffer.getvalue() == "Zoë 中\n".encode()  # type: ignore[attr-defined]
