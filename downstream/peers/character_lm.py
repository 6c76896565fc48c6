"""Character LM: flair's forward and backward language models of characters, and their states around each word.

Source: Akbik et al. 2018 (contextual string embeddings). The models are trained by flair's own trainer, each direction
in a process of its own where there are two threads or more. A word is the state of the forward model after it beside
that of the backward model before it, as `FlairEmbeddings` has it.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from downstream.peers.command import Peer, Training, run_peer
from downstream.peers.record import PeerRecord
from downstream.probe.settings import CommandSettings
from elmoc.settings import setting

DIRECTIONS = ("forward", "backward")
CHUNK = 512
"""Characters that a model is given at once when features are dumped."""
BATCH_CHARACTERS = 16384
"""Characters, with padding, that are encoded together when features are dumped."""


@dataclass(frozen=True, kw_only=True)
class CharacterLmSettings(CommandSettings):
    """Sizes and training of both directions."""

    hidden_size: int = setting(1024, help="width of a direction", least=1, most=10**5)
    embedding_size: int = setting(100, help="width of characters", least=1, most=10**5)
    dropout: float = setting(0.0, help="dropout", least=0, below=1)
    sequence_length: int = setting(125, help="characters of a step of a stream", least=1, most=10**6)
    streams: int = setting(50, help="texts that are read side by side", least=1, most=10**5)
    learning_rate: float = setting(2e-3, help="peak of the learning rate of Adam", above=0, most=1e3)
    gradient_norm: float = setting(1.0, help="gradients are scaled down to this norm", above=0, most=1e6)
    most_characters: int = setting(256, help="characters that are told from each other", least=1, most=10**6)
    part_words: int = setting(500_000, help="words between two looks at held-out text", least=1, most=10**9)
    parts: int = setting(20, help="parts of so many words that are read before one is read again", least=1, most=999)


def train(training: Training) -> None:
    """Train both directions at once, or one after the other where there is one thread."""
    from downstream.peers.character_training import train_directions

    train_directions(training, DIRECTIONS)


class CharacterLm:
    """The states of two trained models around each word, one layer of them: after it forwards, before it backwards."""

    layers = 1

    def __init__(self, folder: Path, record: PeerRecord) -> None:
        from flair.models import LanguageModel

        self._models = [LanguageModel.load_language_model(folder / f"{name}.pt") for name in DIRECTIONS]
        self.width = sum(model.hidden_size for model in self._models)

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """float32 [1, n, width] for each sentence of n words."""
        states = [np.empty((1, len(words), self.width), np.float32) for words in sentences]
        order = sorted(range(len(sentences)), key=lambda index: len(" ".join(sentences[index])))
        while order:
            longest = len(" ".join(sentences[order[-1]])) + 2
            taken = [order.pop() for _ in range(min(len(order), max(1, BATCH_CHARACTERS // longest)))]
            texts = [" ".join(sentences[index]) for index in taken]
            column = 0
            for model, forward in zip(self._models, (True, False), strict=True):
                read = _read(model, texts)  # [longest, sentences, hidden]
                columns = slice(column, column := column + model.hidden_size)
                for row, index in enumerate(taken):
                    states[index][0, :, columns] = read[places(sentences[index], forward=forward), row]
        return states


def places(words: Sequence[str], *, forward: bool) -> list[int]:
    """Where the states of words are in what a model reads: a line break, the words with blanks between them, a blank.

    Forwards that is the blank after each word; the backward model has read the characters in reverse order, and its
    state of a word is that at the blank, or the line's beginning, before it.
    """
    if forward:
        return list(np.cumsum([len(word) + 1 for word in words]))
    return list(np.cumsum([len(word) + 1 for word in reversed(words)])[::-1])


def _read(model: Any, texts: list[str]) -> np.ndarray:
    import torch

    with torch.inference_mode():
        return model.get_representation(texts, "\n", " ", CHUNK).numpy()


PEER = Peer(
    name="character_lm",
    what="flair's language models of characters",
    settings=CharacterLmSettings(),
    packages=("flair",),
    dump_packages=("flair",),
    train=train,
    load=CharacterLm,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m downstream.peers.character_lm` with `arguments`, by default those of the process."""
    return run_peer(PEER, arguments)


if __name__ == "__main__":
    sys.exit(main())
