"""Figures: pictures drawn by matplotlib without a display, and written whole or not at all."""

from pathlib import Path
from typing import Any

from elmoc.errors import InputError, install_advice
from elmoc.files.writing import atomic_path


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


def save_figure(figure: Any, path: Path | str, *, dpi: int = 150) -> None:
    """Write a figure as a PNG of `dpi` pixels an inch."""
    with atomic_path(path) as partial:
        figure.savefig(partial, format="png", dpi=dpi)
