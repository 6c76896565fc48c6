"""Figures: how matplotlib's pictures are written whole or not at all."""

from pathlib import Path
from typing import Any

from elmoc.errors import InputError
from elmoc.files.writing import atomic_path

FORMATS = ("png", "pdf", "svg")


def figure_format(path: Path | str) -> str:
    """The format of a figure by the ending of its file's name, one of `FORMATS`.

    Raises:
        InputError: the ending is none of them.
    """
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise InputError(
            f"{path}: figures are written as .png, .pdf or .svg: give a name with one "
            "of these endings"
        )
    return ending


def save_figure(figure: Any, path: Path | str, *, dpi: int = 150) -> None:
    """Write a figure in the format that its file's name ends with.

    Args:
        figure: of matplotlib.
        path: the file; it is replaced when it is there.
        dpi: pixels an inch of a PNG.
    """
    with atomic_path(path) as partial:
        figure.savefig(partial, format=figure_format(path), dpi=dpi)
