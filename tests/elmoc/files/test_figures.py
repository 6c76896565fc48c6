"""Figures: written in the format that the name of their file ends with."""

from pathlib import Path

import pytest

from elmoc.files.figures import new_figure, save_figure


@pytest.mark.parametrize(("name", "begins"), [("a.png", b"\x89PNG"), ("a.PDF", b"%PDF"), ("a.b.svg", b"<?xml")])
def test_the_format_follows_the_ending(tmp_path: Path, name: str, begins: bytes) -> None:
    figure = new_figure(1, 1)
    figure.subplots()
    save_figure(figure, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begins)
