"""ELMoForManyLangs: its bidirectional LSTM over characters and words, by its own
trainer, and its layers.

    python -m experiments.peers.many_langs TEXT… OUT --max-time 100m
    [--sentences FILE] [--seed 1] [--threads 2]

TEXT has one tokenised sentence a line; features of FILE go to OUT/features.h5.
Source: Che et al. 2018; the package `elmoformanylangs`, release 0.0.4.post2. Features
are those of our import (`elmoc import-elmo`), which computes what the package does from
a reset state: each sentence from zero, L + 1 layers.
"""

import importlib.util
import json
import sys
import types
from collections.abc import Sequence
from contextlib import redirect_stdout
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from elmoc.interop.many_langs import read_many_langs
from elmoc.model import ElmoC
from elmoc.model_directory import write_model_directory
from experiments.peers.common import (
    ENDLESS,
    Clock,
    Options,
    TextBlocks,
    run_peer,
    write_features,
)

# Words of the text: the trainer keeps them in memory as batches, and reads them again
# and again.
WORDS = 3_000_000
BATCH = 32
PIECE_WORDS = 20
MIN_COUNT = 3
LEARNING_RATE = 1e-3
CONFIG = {
    "encoder": {
        "name": "elmo",
        "projection_dim": 256,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 1024,
        "n_layers": 2,
    },
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        # Widths and numbers of the convolutions over characters: a sixth of the
        # published models' numbers.
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 128]],
        "n_highway": 1,
        "word_dim": 100,
        "char_dim": 16,
        "max_characters_per_token": 30,
    },
    "classifier": {"name": "sampled_softmax", "n_samples": 8192},
    "dropout": 0.1,
}


class TimeIsOver(Exception):
    """The time of a training is over: raised out of the package's training loop."""


class ClockedModel:
    """What the trainer is given in place of its model and optimiser: the same, led by
    the clock.
    """

    def __init__(self, clock: Clock, words_a_token: float) -> None:
        self._clock = clock
        self._words_a_token = words_a_token
        self.words = 0.0
        self.loss = 0.0
        self.model: Any = None

    def watch(self, model_class: Any) -> None:
        """Have the instances of the trainer's class of models write down their losses,
        and the words that they read.
        """
        initialise = model_class.__init__
        compute = model_class.forward

        def __init__(model: Any, *arguments: Any) -> None:
            initialise(model, *arguments)
            self.model = model

        def forward(model: Any, words: Any, characters: Any, masks: Any) -> Any:
            losses = compute(model, words, characters, masks)
            targets = len(masks[1]) + len(masks[2])
            self.loss = sum(each.item() for each in losses) / targets
            self.words = int(masks[0].sum()) * self._words_a_token
            return losses

        model_class.__init__ = __init__
        model_class.forward = forward

    def adam(self, parameters: Any, lr: float) -> Any:
        """The optimiser, at a learning rate by the clock; its step raises `TimeIsOver`
        at the end.
        """
        optimizer = torch.optim.Adam(parameters, lr=lr)

        def before(*_: Any) -> None:
            self._clock.start()
            optimizer.param_groups[0]["lr"] = lr * self._clock.factor

        def after(*_: Any) -> None:
            self._clock.step(self.words, self.loss)
            if self._clock.is_over:
                raise TimeIsOver

        optimizer.register_step_pre_hook(before)
        optimizer.register_step_post_hook(after)
        return optimizer


def training_module(clocked: ClockedModel) -> types.ModuleType:
    """`elmoformanylangs.biLM` as today's PyTorch runs it: a number is taken out of a
    tensor by `item()`.
    """
    spec = importlib.util.find_spec("elmoformanylangs.biLM")
    assert spec is not None
    assert spec.origin is not None
    module = importlib.util.module_from_spec(spec)
    source = Path(spec.origin).read_text(encoding="utf-8")
    source = source.replace(".data[0]", ".item()")
    exec(compile(source, spec.origin, "exec"), module.__dict__)
    clocked.watch(module.__dict__["Model"])
    module.__dict__["optim"] = types.SimpleNamespace(Adam=clocked.adam)
    return module


def train(texts: Sequence[Path], folder: Path, *, max_time: str, seed: int) -> None:
    """Train with the package's own trainer until the time is over; writes its files,
    and our import of them.
    """
    package = folder / "package"
    package.mkdir(exist_ok=True)
    text = folder / "text.txt"
    config = package / "model.json"
    config.write_text(json.dumps(CONFIG, indent=1) + "\n", encoding="utf-8")
    blocks = TextBlocks(texts, seed=seed)
    words = 0
    sentences = 0
    with open(text, "w", encoding="utf-8") as file:
        for block in islice(blocks.blocks(), len(blocks)):
            file.writelines(" ".join(sentence) + "\n" for sentence in block)
            words += sum(map(len, block))
            sentences += len(block)
            if words >= WORDS:
                break
    clocked = ClockedModel(Clock(max_time), words / (words + 2 * sentences))
    options = {
        "seed": seed,
        "train_path": text,
        "config_path": config,
        "model": package,
        "optimizer": "adam",
        "lr": LEARNING_RATE,
        "batch_size": BATCH,
        "max_epoch": ENDLESS,
        "max_sent_len": PIECE_WORDS,
        "min_count": MIN_COUNT,
        "eval_steps": ENDLESS,
    }
    line = ["biLM", "train"]
    for name, value in options.items():
        line += [f"--{name}", str(value)]
    with patch("sys.argv", line), redirect_stdout(sys.stderr):
        try:
            training_module(clocked).train()
        except TimeIsOver:
            clocked.model.save_model(str(package), False)
    write_model_directory(folder / "imported", read_many_langs(package))


def train_and_write(options: Options) -> None:
    """Train, unless the folder has a model, and write the features of the sentences."""
    imported = options.out / "imported"
    if not imported.exists():
        train(options.texts, options.out, max_time=options.max_time, seed=options.seed)
    if options.sentences is not None:
        model = ElmoC.from_pretrained(imported, precision="float32")
        attributes = {"peer": "many_langs"}
        write_features(
            options.out / "features.h5",
            options.sentences,
            lambda sentences: [
                states.numpy() for states in model.embed_batch(sentences)
            ],
            attributes,
        )


if __name__ == "__main__":
    run_peer("many_langs", "ELMoForManyLangs", train_and_write)
