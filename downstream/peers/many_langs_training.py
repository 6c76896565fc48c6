"""Training of ELMoForManyLangs: how is the package's own trainer led by the clock, and gone on with?"""

import importlib.util
import json
import sys
import types
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import torch

from downstream.peers.clock import TimeIsOver, follow_clock
from downstream.peers.command import CHECKPOINT_SECONDS, Training
from elmoc.files.text import read_lines
from elmoc.files.writing import atomic_path

if TYPE_CHECKING:
    from downstream.peers.many_langs import ManyLangsSettings

CHECKPOINT = "checkpoint"
FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 128]]
"""Widths and numbers of the convolutions over characters: a sixth of those of the published models."""
ENDLESS = 10**9


def train_model(training: Training) -> None:
    """Train until the time is over; the model is in the package's own files."""
    folder, settings = training.directory, training.settings
    folder.model.mkdir(exist_ok=True)
    (folder.work / CHECKPOINT).mkdir(exist_ok=True)
    text, config = folder.work / "text.txt", folder.model / "model.json"
    if not text.exists():
        training.text.write_sample(text, settings.words)
    config.write_text(json.dumps(model_config(settings), indent=1) + "\n", encoding="utf-8")
    clocked = _ClockedTraining(training, words_a_token=words_a_token(text))
    module = training_module(clocked)
    options = {
        "seed": (training.record.seed + training.record.words) % 2**32,  # another order after an interruption
        "train_path": text,
        "config_path": config,
        "model": folder.model,
        "optimizer": "adam",
        "lr": settings.learning_rate,
        "batch_size": settings.batch_size,
        "max_epoch": ENDLESS,
        "max_sent_len": settings.piece_words,
        "min_count": settings.min_count,
        "eval_steps": ENDLESS,
    }
    line = ["biLM", "train", *(str(word) for name, value in options.items() for word in (f"--{name}", value))]
    with patch("sys.argv", line), redirect_stdout(sys.stderr):
        try:
            module.train()
        except TimeIsOver:
            clocked.model.save_model(str(folder.model), False)


def model_config(settings: "ManyLangsSettings") -> dict[str, Any]:
    """The config of the model, as the package reads it."""
    return {
        "encoder": {
            "name": "elmo",
            "projection_dim": settings.projection_size,
            "cell_clip": 3,
            "proj_clip": 3,
            "dim": settings.cell_size,
            "n_layers": settings.layers,
        },
        "token_embedder": {
            "name": "cnn",
            "activation": "relu",
            "filters": FILTERS,
            "n_highway": 1,
            "word_dim": settings.word_size,
            "char_dim": settings.character_size,
            "max_characters_per_token": settings.most_characters,
        },
        "classifier": {"name": "sampled_softmax", "n_samples": settings.samples},
        "dropout": settings.dropout,
    }


def words_a_token(text: Path) -> float:
    """The part of the trainer's tokens that are words, and not the beginning or end of a sentence."""
    words = sentences = 0
    for line in read_lines(text):
        words, sentences = words + len(line.split()), sentences + 1
    return words / (words + 2 * sentences)


class _ClockedTraining:
    """What the trainer is given in place of its model and optimiser: the same, led by the clock, and kept."""

    def __init__(self, training: Training, *, words_a_token: float) -> None:
        self._training, self._words_a_token = training, words_a_token
        self.words, self.loss = 0.0, 0.0
        self.model: Any
        left = training.directory.work / CHECKPOINT / "state.pt"
        self._file, self._left = left, None
        if training.record.checkpoint:
            self._left = torch.load(left, weights_only=True)

    def watch(self, model_class: Any) -> None:
        """Have the instances of the trainer's class of models begin where it was left, and write their losses down."""
        initialise, compute = model_class.__init__, model_class.forward

        def __init__(model: Any, *arguments: Any) -> None:
            initialise(model, *arguments)
            self.model = model
            if self._left is not None:
                model.load_state_dict(self._left["model"])

        def forward(model: Any, words: Any, characters: Any, masks: Any) -> Any:
            tokens = int(masks[0].sum())
            losses = compute(model, words, characters, masks)
            self.loss = sum(each.item() for each in losses) / (len(masks[1]) + len(masks[2]))
            self.words = tokens * self._words_a_token
            return losses

        model_class.__init__, model_class.forward = __init__, forward

    def adam(self, parameters: Any, lr: float) -> Any:
        """The optimiser."""
        training, optimizer = self._training, torch.optim.Adam(parameters, lr=lr)
        if self._left is not None:
            optimizer.load_state_dict(self._left["optimizer"])
            self._left = None
        follow_clock(optimizer, training.clock, peak=lr, words=lambda: self.words, loss=lambda: self.loss)
        optimizer.register_step_post_hook(lambda *_: self._keep(optimizer))
        return optimizer

    def _keep(self, optimizer: Any) -> None:
        if self._training.clock.is_due(CHECKPOINT_SECONDS):
            with atomic_path(self._file) as partial:
                torch.save({"model": self.model.state_dict(), "optimizer": optimizer.state_dict()}, partial)
            self._training.keep(checkpoint=CHECKPOINT)


def training_module(clocked: _ClockedTraining) -> types.ModuleType:
    """`elmoformanylangs.biLM` as today's PyTorch runs it: a number is taken out of a tensor by `item()`."""
    spec = importlib.util.find_spec("elmoformanylangs.biLM")
    assert spec is not None
    assert spec.origin is not None
    module = importlib.util.module_from_spec(spec)
    source = "".join(f"{line}\n" for line in read_lines(spec.origin)).replace(".data[0]", ".item()")
    exec(compile(source, spec.origin, "exec"), module.__dict__)
    clocked.watch(module.__dict__["Model"])
    module.__dict__["optim"] = types.SimpleNamespace(Adam=clocked.adam)
    return module
