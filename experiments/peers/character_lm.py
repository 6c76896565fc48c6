"""Character LM: flair's forward and backward language models of characters, and their states around each word.

    python -m experiments.peers.character_lm TEXT… OUT --max-time 100m --sentences FILE

Source: Akbik et al. 2018. flair's own trainer trains one direction after the other, each for half of the time. A word
is the state of the forward model after it beside that of the backward model before it, as `FlairEmbeddings` has it.
"""

import logging
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import flair
import numpy as np
import torch
from flair.data import Dictionary
from flair.models import LanguageModel
from flair.trainers.language_model_trainer import LanguageModelTrainer, TextCorpus
from torch import Tensor
from torch.nn import CrossEntropyLoss

from elmoc.devices import has_bf16
from elmoc.settings import parse_duration
from experiments.peers.common import Clock, TextBlocks, TimeIsOver, arguments_of, follow_clock, write_features

DIRECTIONS = ("forward", "backward")
HIDDEN, EMBEDDING = 1024, 100
SEQUENCE, STREAMS = 125, 50  # characters of a step of a stream; texts that are read side by side
LEARNING_RATE = 2e-3
CHARACTERS = 256  # that are told from each other
HELD_OUT_WORDS, PART_WORDS, PARTS = 5_000, 500_000, 20  # the trainer looks at held-out text after every part
CHUNK = 512  # characters that a model is given at once when features are made
BATCH_CHARACTERS = 16384  # with padding, then


class LastLoss(CrossEntropyLoss):
    """The loss of flair's trainer, which keeps its last value."""

    last = 0.0

    def forward(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The mean cross entropy of characters."""
        loss = super().forward(scores, targets)
        self.last = loss.item()
        return loss


def write_text(texts: Sequence[Path], folder: Path, *, seed: int) -> None:
    """Write the text as flair's trainer reads it: held-out text, and parts of a pass in random order."""
    (folder / "train").mkdir(parents=True, exist_ok=True)
    parts = [(folder / f"train/{part:03}.txt", PART_WORDS) for part in range(PARTS)]
    TextBlocks(texts, seed=seed).write_samples([(folder / "valid.txt", HELD_OUT_WORDS), *parts])
    shutil.copyfile(folder / "valid.txt", folder / "test.txt")
    for path, _ in parts:
        if not path.stat().st_size:
            path.unlink()


def train(direction: str, text: Path, folder: Path, *, max_time: str, seed: int) -> None:
    """Train a direction by flair's trainer until the time is over, and write its model."""
    logging.getLogger("flair").handlers.clear()  # the trainer's log is a file
    flair.set_seed(seed)
    counts: Counter[str] = Counter((text / "train/000.txt").read_text(encoding="utf-8"))
    dictionary = Dictionary()
    for character, _ in counts.most_common(CHARACTERS):
        dictionary.add_item(character)
    forward = direction == "forward"
    corpus = TextCorpus(text, dictionary, forward, character_level=True)
    model = LanguageModel(dictionary, forward, hidden_size=HIDDEN, nlayers=1, embedding_size=EMBEDDING, dropout=0.0)
    trainer = LanguageModelTrainer(model, corpus)
    trainer.loss_function = loss = LastLoss()
    clock = Clock(max_time)
    words = STREAMS * SEQUENCE * (counts[" "] + counts["\n"]) / counts.total()

    def optimizer_of(parameters: Any, lr: float) -> Any:
        optimizer = torch.optim.Adam(parameters, lr=lr)  # with AdamW, flair's scheduler needs an older PyTorch
        follow_clock(optimizer, clock, peak=lr, words=lambda: words, loss=lambda: loss.last)
        return optimizer

    trainer.optimizer = optimizer_of
    try:
        trainer.train(
            folder / f"work_{direction}",
            sequence_length=SEQUENCE,
            learning_rate=LEARNING_RATE,
            mini_batch_size=STREAMS,
            clip=1.0,
            max_epochs=10**6,
            num_workers=0,
            use_amp=has_bf16(torch.device("cpu")),
        )
    except TimeIsOver:
        trainer.model.save(folder / f"{direction}.pt")


def places(words: Sequence[str], *, forward: bool) -> list[int]:
    """Where the states of words are in what a model reads: a line break, the words with blanks between them, a blank.

    Forwards that is the blank after each word; the backward model has read the characters in reverse order, and its
    state of a word is that at the blank, or the line's beginning, before it.
    """
    if forward:
        return list(np.cumsum([len(word) + 1 for word in words]))
    return list(np.cumsum([len(word) + 1 for word in reversed(words)])[::-1])


def encoder(folder: Path) -> Callable[[list[list[str]]], list[np.ndarray]]:
    """A function from sentences to float32 [1, n, 2 · HIDDEN]."""
    models = [LanguageModel.load_language_model(folder / f"{name}.pt") for name in DIRECTIONS]

    def encode(sentences: list[list[str]]) -> list[np.ndarray]:
        states = [np.empty((1, len(words), 2 * HIDDEN), np.float32) for words in sentences]
        order = sorted(range(len(sentences)), key=lambda index: len(" ".join(sentences[index])))
        while order:
            longest = len(" ".join(sentences[order[-1]])) + 2
            taken = [order.pop() for _ in range(min(len(order), max(1, BATCH_CHARACTERS // longest)))]
            texts = [" ".join(sentences[index]) for index in taken]
            for side, model in enumerate(models):
                with torch.inference_mode():
                    read = model.get_representation(texts, "\n", " ", CHUNK).numpy()  # [longest, sentences, HIDDEN]
                columns = slice(side * HIDDEN, (side + 1) * HIDDEN)
                for row, index in enumerate(taken):
                    states[index][0, :, columns] = read[places(sentences[index], forward=side == 0), row]
        return states

    return encode


def main() -> None:
    """Train both directions, unless they are there, and write the features of the sentences."""
    arguments = arguments_of("flair's language models of characters")
    text, half = arguments.out / "text", f"{parse_duration(arguments.max_time) / 2:.0f}s"
    for number, direction in enumerate(DIRECTIONS):
        if not (arguments.out / f"{direction}.pt").exists():
            write_text(arguments.texts, text, seed=arguments.seed)
            train(direction, text, arguments.out, max_time=half, seed=arguments.seed + number)
    if arguments.sentences:
        attributes = {"peer": "character_lm", "training_time": arguments.max_time}
        write_features(arguments.out / "features.h5", arguments.sentences, encoder(arguments.out), attributes)


if __name__ == "__main__":
    main()
