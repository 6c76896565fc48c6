"""Training a contextual encoder: from a corpus directory to a model directory."""

from pathlib import Path

CONFIGS = Path(__file__).resolve().parent / "configs"
"""The folder of the project's configs."""
