"""Training a contextual encoder: from a corpus directory to a model directory."""

from pathlib import Path

# the folder of the project's configs
CONFIGS = Path(__file__).resolve().parent / "configs"
