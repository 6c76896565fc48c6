"""The check of the documentation: it finds commands and their lines, shortens them, and fails with the place."""

from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.__main__ import check_page, is_run, shortened
from tests.docs.pages import blocks, inline_commands, links, page_commands
from tests.test_docs import command_line_problem

PAGE = """\
# A page

See [another](other.md) and `python -m pretrain.plot RUN OUT.png`.

```sh
one --a b    # a comment
two \\
    --c      # another
```

```text
three
```

```python
raise SystemExit(3)
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(PAGE)
    return tmp_path / "page.md"


def test_what_stands_where(page: Path) -> None:
    assert [(block.line, block.language) for block in blocks(page)] == [(6, "sh"), (12, "text"), (16, "python")]
    assert [(place.line, place.text) for place in page_commands(page)] == [(6, "one --a b"), (7, "two --c")]
    assert [(place.line, place.text) for place in links(page)] == [(3, "other.md")]
    assert [place.text for place in inline_commands(page)] == ["python -m pretrain.plot RUN OUT.png"]


@pytest.mark.parametrize(("end", "problem"), [("```\nx\n```\n", "names no language"), ("```sh\nx\n", "does not end")])
def test_fences_that_are_wrong(page: Path, end: str, problem: str) -> None:
    page.write_text(PAGE + end)
    with pytest.raises(ValueError, match=f"line 18: the fence {problem}"):
        blocks(page)


def test_long_settings_are_shortened() -> None:
    assert shortened("torchrun --nproc-per-node 8 x --max-time 20m") == "torchrun --nproc-per-node 2 x --max-time 4s"
    assert not is_run("make test")
    assert is_run("makes test")


def test_a_command_that_fails_is_named_with_its_line(page: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as end:
        check_page(page, tmp_path)
    assert "page.md, line 6: one --a b" in str(end.value)
    assert str(end.value).endswith("ended with status 127")


def test_python_that_fails_is_named_with_its_line(page: Path, tmp_path: Path) -> None:
    page.write_text(PAGE.replace("one --a b", "true").replace("two", "true").replace("SystemExit(3)", "ValueError"))
    with pytest.raises(SystemExit) as end:
        check_page(page, tmp_path)
    assert "line 16, in <module>" in str(end.value)
    assert "page.md, line 1: its Python blocks\nended with status 1" in str(end.value)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("pretrain a.toml run --describe", None),
        ("pretrain a.toml run --max-tim 5m --resumee", "unrecognized arguments: --resumee"),
        ("pretrain.plot run", "the following arguments are required: output"),
        ("downstream nerr --small", "invalid choice: 'nerr'"),
        ("pretrain.nothing", "no module pretrain.nothing"),
        ("elmoc dump-features a b c --device cuda --cuda-device 0", "not allowed with argument"),
    ],
)
def test_command_lines_are_parsed_and_not_run(
    words: str, problem: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = command_line_problem(words.split(), monkeypatch, capsys)
    assert (found is None) if problem is None else (problem in (found or ""))
