"""Benchmark of writing: every layout has its row, and nothing is left."""

from pathlib import Path

import pytest

from elmoc.benchmark import writing
from elmoc.features.layouts import LAYOUTS


def test_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rows = list(writing.rows(quick=True))
    assert all(any(what.startswith(layout) for what, _ in rows) for layout in LAYOUTS)
    assert all("MB/s" in figure or "µs" in figure for _, figure in rows)
    assert not list(tmp_path.iterdir())
