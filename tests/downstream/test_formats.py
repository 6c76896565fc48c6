"""The formats of the tasks: each example is read, and docs/probes.md shows them all."""

import io
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from downstream.__main__ import main
from tests.downstream.formats import FORMATS

from downstream.tasks import TASKS, load_task

PAGE = Path(__file__).parent.parent.parent / "docs" / "probes.md"


def test_the_page_of_formats_is_up_to_date() -> None:
    """Its table has a row for each, in their order."""
    table = "| task | file | first three lines (⇥ is a tab) |\n|---|---|---|\n"
    for task, formats in FORMATS.items():
        for name, example in formats.items():
            lines = example.replace("\t", "⇥").replace("|", "\\|").splitlines()[:3]
            table += f"| `{task}` | {name} | {'<br>'.join(f'`{line}`' for line in lines)} |\n"
    assert f"{table}\n" in PAGE.read_text(encoding="utf-8")
    assert list(FORMATS) == list(TASKS)


@pytest.mark.parametrize(("task", "name"), [(task, name) for task, formats in FORMATS.items() for name in formats])
def test_the_example_of_a_format_is_read(
    task: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known: Any = load_task(task)
    options = dict(re.findall(r"`--(\S+) (\d+)`", name))
    (tmp_path / "file").write_text(FORMATS[task][name], encoding="utf-8")
    reader = replace(known.reader, **{key: int(value) for key, value in options.items()})
    examples = known.read(tmp_path / "file", reader, training=True)
    assert isinstance(known.vocabulary(examples), dict)
    words = [" ".join(each.words) for example in examples for each in known.sentences(example)]
    capsys.readouterr()
    assert main(["sentences", task, str(tmp_path / "file"), *(f"--{key}={options[key]}" for key in options)]) == 0
    assert capsys.readouterr().out.splitlines() == list(dict.fromkeys(words)) != []


def test_sentences_are_utf8_whatever_the_terminal_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.conll").write_text("Zoë\tB-PER\n中\tO\n", encoding="utf-8")
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["sentences", "ner", str(tmp_path / "a.conll")]) == 0
    assert terminal.buffer.getvalue() == "Zoë 中\n".encode()  # type: ignore[attr-defined]
