"""Figures: pictures drawn by matplotlib without a display, and written whole or not at all."""

from pathlib import Path
from typing import Any

from elmoc.errors import InputError, install_advice
from elmoc.files.writing import atomic_path

FORMATS = ("png", "pdf", "svg")
"""Those of figures."""


def new_figure(width: float, height: float) -> Any:
    """An empty figure of matplotlib, of a width and height in inches; an `InputError` without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_library(error, "matplotlib") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def missing_library(error: ImportError, library: str) -> InputError:
    """The error for a library that plots need, which is called `library` where `error` does not name it."""
    name = (error.name or library).partition(".")[0]
    return InputError(f"plots need {name}: {install_advice('plots')}")


def figure_format(path: Path | str) -> str:
    """The format of a figure by the ending of its file's name, one of `FORMATS`; an `InputError` for another ending."""
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise InputError(f"{path}: figures are written as .png, .pdf or .svg: give a name with one of these endings")
    return ending


def save_figure(figure: Any, path: Path | str, *, dpi: int = 150) -> None:
    """Write a figure in the format that its file's name ends with; a PNG has `dpi` pixels an inch."""
    with atomic_path(path) as partial:
        figure.savefig(partial, format=figure_format(path), dpi=dpi)
