"""Reading benchmark: it measures each layout in every way, and says so."""

import pytest

from elmoc.benchmark import reading


def test_every_layout_is_read_in_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "WORKERS", 2)
    found = dict(reading.rows(quick=True))
    for layout in reading.LAYOUTS:
        assert "µs afterwards" in found[f"{layout}, finding a sentence"]
        for order in ("in order", "at random"):
            for processes in ("1 process", "2 processes"):
                assert "sentences/s" in found[f"{layout}, reading {order}, {processes}"]
