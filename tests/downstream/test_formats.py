"""The formats of the tasks: each example is read, and docs/probes.md shows them all."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from downstream.__main__ import main
from downstream.formats import FORMATS, Format, page

from downstream.tasks import TASKS, load_task

PAGE = Path(__file__).parent.parent.parent / "docs" / "probes.md"
ALL = [(name, form) for name, forms in FORMATS.items() for form in forms]


def test_the_page_of_formats_is_up_to_date() -> None:
    """`python -m downstream.formats docs/probes.md` brings it up to date."""
    assert page(PAGE.read_text()) == PAGE.read_text()
    assert all(f"| `{name}` | {form.name}" in PAGE.read_text() for name, form in ALL)
    assert list(FORMATS) == list(TASKS)


@pytest.mark.parametrize(("name", "form"), ALL, ids=[f"{name}: {form.name}" for name, form in ALL])
def test_the_example_of_a_format_is_read_and_its_sentences_are_printed(
    name: str, form: Format, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task: Any = load_task(name)
    path = tmp_path / f"file{form.suffix}"
    path.write_text(form.example, encoding="utf-8")
    examples = task.read(path, replace(task.reader, **form.options), training=True)
    words = [" ".join(each.words) for example in examples for each in task.sentences(example)]
    assert words
    capsys.readouterr()
    options = [f"--{key.replace('_', '-')}={value}" for key, value in form.options.items()]
    assert main(["sentences", name, str(path), *options]) == 0
    assert capsys.readouterr().out.splitlines() == list(dict.fromkeys(words))
    assert json.dumps(task.vocabulary(examples))
