"""Makes `many_langs/`: trains tiny models with the package `elmoformanylangs` and keeps what they give.

In an environment with torch, h5py, overrides 3.1.0 and elmoformanylangs 0.0.4.post2, in this folder:

    python make_many_langs.py

Each model has a folder: what the package saves, and `expected.npz` with its layers [L + 1, n, 2P] of every sentence,
from zero state (`fresh0`, …), and with the state carried from sentence to sentence (`carried0`, …).
"""

import contextlib
import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from elmoformanylangs import Embedder

FOLDER = Path(__file__).parent / "many_langs"
ENCODER = {"name": "elmo", "projection_dim": 6, "cell_clip": 3, "proj_clip": 3, "dim": 10, "n_layers": 2}
TOKENS = {
    "name": "cnn",
    "activation": "relu",
    "filters": [[1, 4], [2, 4], [3, 6]],
    "n_highway": 2,
    "word_dim": 5,
    "char_dim": 4,
    "max_characters_per_token": 12,
}
MODELS: dict[str, dict[str, Any]] = {
    "words_and_characters": {"encoder": ENCODER, "token_embedder": TOKENS},
    "characters": {
        "encoder": ENCODER | {"n_layers": 3, "cell_clip": 0.4, "proj_clip": 0.2},
        "token_embedder": TOKENS | {"activation": "tanh", "n_highway": 1, "word_dim": 0},
    },
    "words": {"encoder": ENCODER, "token_embedder": TOKENS | {"char_dim": 0}},
}


def training_module() -> types.ModuleType:
    """`elmoformanylangs.biLM` as today's PyTorch runs it: a number is taken out of a tensor by `item()`."""
    spec = importlib.util.find_spec("elmoformanylangs.biLM")
    assert spec is not None
    assert spec.origin is not None
    module = importlib.util.module_from_spec(spec)
    source = Path(spec.origin).read_text(encoding="utf-8")
    exec(compile(source.replace(".data[0]", ".item()"), spec.origin, "exec"), module.__dict__)
    return module


def train(folder: Path, config: dict[str, Any]) -> None:
    """Train a model for a few steps; the config is written into its folder, as `config_path` names it."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = config | {"classifier": {"name": "softmax"}, "dropout": 0.1}
    (folder / "tiny.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    options = {"optimizer": "adam", "lr": 0.02, "max_epoch": 30, "batch_size": 4, "max_sent_len": 12, "min_count": 1}
    options |= {"train_path": "sentences.txt", "config_path": "tiny.json", "model": "."}
    words = ["biLM", "train", *(str(word) for name, value in options.items() for word in (f"--{name}", value))]
    text = (FOLDER / "sentences.txt").read_text(encoding="utf-8")
    (folder / "sentences.txt").write_text(text, encoding="utf-8")
    with patch("sys.argv", words), contextlib.chdir(folder):
        training_module().train()
    (folder / "sentences.txt").unlink()


def main() -> None:
    """Make all models."""
    lines = (FOLDER / "unseen.txt").read_text(encoding="utf-8").splitlines()
    sentences = [line.split(" ") for line in lines]
    for name, config in MODELS.items():
        folder = FOLDER / name
        train(folder, config)
        embedder = Embedder(str(folder), batch_size=1)
        carried = [embedder.sents2elmo([words], output_layer=-2)[0] for words in sentences]
        fresh = []
        for words in sentences:
            embedder.model.encoder._states = None
            fresh += embedder.sents2elmo([words], output_layer=-2)
        arrays = {f"fresh{index}": each for index, each in enumerate(fresh)}
        np.savez(folder / "expected.npz", **arrays, **{f"carried{index}": each for index, each in enumerate(carried)})


if __name__ == "__main__":
    sys.exit(main())
