"""Figures: how matplotlib's pictures are written whole or not at all."""

from pathlib import Path
from typing import Any

from elmoc.files.writing import atomic_path


def save_figure(figure: Any, path: Path | str, *, dpi: int = 150) -> None:
    """Write a figure in the format that its file's name ends with.

    Args:
        figure: of matplotlib.
        path: the file; it is replaced when it is there.
        dpi: pixels an inch of a PNG.
    """
    with atomic_path(path) as partial:
        figure.savefig(partial, format=Path(path).suffix[1:], dpi=dpi)
