"""Does the benchmark of reading features give a table, and end its processes?"""

import multiprocessing
import re
from pathlib import Path

import pytest

from downstream.reading_speed import main


def test_one_reader_and_two_at_once(features: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(features), "--seconds", "0.01", "--rounds", "2"]) == 0
    title, _, one, two = capsys.readouterr().out.splitlines()
    assert title.startswith(f"{features}: 10 sentences, 3 layers of 12, float32, ")
    assert re.fullmatch(r"one process +[1-9][\d,]* +[\d.]+ [KMG]B", one)
    assert re.fullmatch(r"each of two at once +[1-9][\d,]* +[\d.]+ [KMG]B +\d+\.\d\d", two)
    assert not multiprocessing.active_children()


def test_what_cannot_be_measured(features: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["none.h5"]) == 1
    assert "none.h5 does not exist" in capsys.readouterr().err
    assert main([str(features), "--rounds", "0"]) == 1
    assert "--rounds must be at least 1" in capsys.readouterr().err
