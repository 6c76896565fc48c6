"""What tests of results share."""

from pathlib import Path
from typing import Any

import pytest

from downstream.__main__ import main
from tests.downstream.results.result_lines import Run, write_lines


@pytest.fixture
def table(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Make a table of these lines of results; returns the cells of its rows, below the header."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*lines: dict[str, Any], arguments: tuple[object, ...] = ()) -> list[list[str]]:
        path = write_lines(tmp_path / "lines.jsonl", *lines)
        markdown = tmp_path / "table.md"
        status = main(["table", str(path), "--resamples", "200", "--markdown", str(markdown), *map(str, arguments)])
        assert status == 0, capsys.readouterr().err
        first = markdown.read_text(encoding="utf-8").split("**Runs")[0]
        return [line.strip("| ").split(" | ") for line in first.splitlines() if line.startswith("|")][2:]

    return run
