"""Training of character LMs: how is flair's trainer led by the clock, one direction or both at once?"""

import logging
import math
import multiprocessing
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.nn import CrossEntropyLoss

from downstream.peers.clock import Clock, follow_clock
from downstream.peers.command import CHECKPOINT_SECONDS, Training
from downstream.peers.record import ADVICE
from downstream.peers.text import TextBlocks
from elmoc.devices import has_bf16
from elmoc.files.records import read_record, write_record
from elmoc.files.text import read_lines
from elmoc.files.writing import atomic_directory, atomic_path
from elmoc.process import end_with_parent
from elmoc.settings import setting

if TYPE_CHECKING:
    from downstream.peers.character_lm import CharacterLmSettings

HELD_OUT_WORDS = 5_000
"""Of which the trainer says, after every part, what the loss is."""
FORMAT, VERSION = "elmoc-character-lm-progress", 1


@dataclass(frozen=True, kw_only=True)
class DirectionProgress:
    """How far the training of a direction has come, beside its checkpoint."""

    seconds: float = setting(0.0, least=0)
    words: int = setting(0, least=0)


@dataclass(frozen=True, kw_only=True)
class Direction:
    """What the training of a direction is given; it can be sent to another process.

    work, model, log: the folders and the log of the peer.
    characters_a_word: in the text, the blank included.
    """

    name: str
    settings: "CharacterLmSettings"
    limit: float
    seed: int
    threads: int
    work: Path
    model: Path
    log: Path
    alphabet: str
    characters_a_word: float
    shown: bool

    @property
    def checkpoint(self) -> Path:
        """The model and its optimiser, of an unfinished training."""
        return self.work / f"{self.name}.pt"

    @property
    def trained(self) -> Path:
        """The finished model."""
        return self.model / f"{self.name}.pt"

    @property
    def noted(self) -> Path:
        """How far the training has come at the checkpoint."""
        return self.work / f"{self.name}.json"

    def left(self) -> DirectionProgress:
        """Where to go on."""
        if not self.noted.exists():
            return DirectionProgress()
        return read_record(self.noted, DirectionProgress, format=FORMAT, version=VERSION, advice=ADVICE)


def train_directions(training: Training, names: Sequence[str]) -> None:
    """Train all directions: at once where there is a thread for each, else one after the other in equal times."""
    record, folder, clock = training.record, training.directory, training.clock
    folder.model.mkdir(exist_ok=True)
    text = folder.work / "text"
    write_text(training.text, text, training.settings)
    alphabet, characters_a_word = alphabet_of(text / "train/000.txt", training.settings.most_characters)
    at_once = record.threads >= len(names)
    directions = [
        Direction(
            name=name,
            settings=training.settings,
            limit=record.max_seconds if at_once else record.max_seconds / len(names),
            seed=record.seed + index,
            threads=record.threads // len(names) if at_once else record.threads,
            work=folder.work,
            model=folder.model,
            log=folder.log,
            alphabet=alphabet,
            characters_a_word=characters_a_word,
            shown=index == 0 or not at_once,
        )
        for index, name in enumerate(names)
    ]
    clock.close()  # the directions have bars of their own
    if at_once:
        spawn, parent = multiprocessing.get_context("spawn"), os.getpid()
        with ProcessPoolExecutor(len(names), spawn, initializer=end_with_parent, initargs=(parent,)) as pool:
            done = list(pool.map(train_direction, directions))
    else:
        done = [train_direction(direction) for direction in directions]
    seconds = [each.seconds for each in done]
    clock.finish(seconds=max(seconds) if at_once else sum(seconds), words=sum(each.words for each in done) / len(done))


def train_direction(direction: Direction) -> DirectionProgress:
    """Train one direction by flair's trainer, or go on from its checkpoint; writes its model."""
    import flair
    import torch

    settings, left = direction.settings, direction.left()
    if left.seconds >= direction.limit and direction.trained.exists():  # before the other direction was interrupted
        return left
    logging.getLogger("flair").handlers.clear()  # the trainer's log is a file
    torch.set_num_threads(direction.threads)
    flair.set_seed((direction.seed + left.words) % 2**32)  # another order than the one before an interruption
    clock = Clock(
        direction.limit,
        before=left.seconds,
        words=left.words,
        log=direction.log,
        shown=direction.shown,
        names={"direction": direction.name},
    )
    trainer = _open_trainer(direction, left)
    trainer.loss_function = loss = _LastLoss()

    def keep(optimizer: Any) -> None:
        if clock.is_due(CHECKPOINT_SECONDS):
            with atomic_path(direction.checkpoint) as partial:
                trainer.model.save_checkpoint(partial, optimizer, 0, 0, 10_000.0)
            write_record(direction.noted, _progress(clock), format=FORMAT, version=VERSION)

    def optimizer_of(parameters: Any, lr: float) -> Any:
        optimizer = torch.optim.Adam(parameters, lr=lr)  # with AdamW, flair's scheduler needs an older PyTorch
        words = settings.streams * settings.sequence_length / direction.characters_a_word
        follow_clock(optimizer, clock, peak=lr, words=lambda: words, loss=lambda: loss.last)
        optimizer.register_step_post_hook(lambda *_: keep(optimizer))
        return optimizer

    trainer.optimizer = optimizer_of
    if not clock.is_over:
        trainer.train(
            direction.work / direction.name,
            sequence_length=settings.sequence_length,
            learning_rate=settings.learning_rate,
            mini_batch_size=settings.streams,
            clip=settings.gradient_norm,
            max_epochs=10**6,
            num_workers=0,
            use_amp=has_bf16(torch.device("cpu")),
        )
    clock.close()
    if not clock.is_over:
        raise KeyboardInterrupt  # the trainer returns after an interrupt as it does when the time is over
    with atomic_path(direction.trained) as partial:
        trainer.model.save(partial)
    write_record(direction.noted, done := _progress(clock), format=FORMAT, version=VERSION)
    return done


def _open_trainer(direction: Direction, left: DirectionProgress) -> Any:
    """A new trainer, or that of the checkpoint; it begins with the part of the text that comes next."""
    from flair.data import Dictionary
    from flair.models import LanguageModel
    from flair.trainers.language_model_trainer import LanguageModelTrainer, TextCorpus

    settings, forward = direction.settings, direction.name == "forward"
    dictionary = Dictionary()
    for character in direction.alphabet:
        dictionary.add_item(character)
    corpus = TextCorpus(direction.work / "text", dictionary, forward, character_level=True)
    read = math.ceil(left.words / settings.part_words) % len(corpus.train.files)
    corpus.train.files = corpus.train.files[read:] + corpus.train.files[:read]
    if left.seconds:
        trainer = LanguageModelTrainer.load_checkpoint(direction.checkpoint, corpus)
        trainer.epoch = trainer.split = 0
        return trainer
    model = LanguageModel(
        dictionary,
        forward,
        hidden_size=settings.hidden_size,
        nlayers=1,
        embedding_size=settings.embedding_size,
        dropout=settings.dropout,
    )
    return LanguageModelTrainer(model, corpus)


def _progress(clock: Clock) -> DirectionProgress:
    return DirectionProgress(seconds=clock.seconds, words=round(clock.words))


def write_text(text: TextBlocks, folder: Path, settings: "CharacterLmSettings") -> None:
    """Write the text as flair's trainer reads it: held-out text, and parts of a pass in random order."""
    if folder.exists():
        return
    with atomic_directory(folder) as partial:
        (partial / "train").mkdir()
        next_block, _ = text.write_sample(partial / "valid.txt", HELD_OUT_WORDS)
        shutil.copyfile(partial / "valid.txt", partial / "test.txt")
        for part in range(settings.parts):
            path = partial / f"train/{part:03}.txt"
            next_block, _ = text.write_sample(path, settings.part_words, first=next_block)
            if next_block % len(text) == 0:
                break


def alphabet_of(file: Path, most: int) -> tuple[str, float]:
    """The most frequent characters of a text, and characters a word, its blank included."""
    counts: Counter[str] = Counter()
    for line in read_lines(file):
        counts.update(line + "\n")
    words = counts[" "] + counts["\n"]
    return "".join(each for each, _ in counts.most_common(most)), counts.total() / words


class _LastLoss(CrossEntropyLoss):
    """The loss of flair's trainer, which keeps its last value."""

    last = 0.0

    def forward(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The mean cross entropy of characters."""
        loss = super().forward(scores, targets)
        self.last = loss.item()
        return loss
