"""ELMoForManyLangs: its bidirectional LSTM over characters and words, by its own trainer, and its layers.

Source: Che et al. 2018; the package `elmoformanylangs`, release 0.0.4.post2. Features are those of our import
(`elmoc import-elmo`), which computes what the package does from a reset state: each sentence from zero, L + 1 layers.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from downstream.peers.command import Peer, Training, run_peer
from downstream.peers.record import PeerRecord
from downstream.probe.settings import CommandSettings
from elmoc.errors import InputError
from elmoc.settings import setting


@dataclass(frozen=True, kw_only=True)
class ManyLangsSettings(CommandSettings):
    """Sizes and training of the bidirectional language model."""

    projection_size: int = setting(256, help="width of a direction", least=1, most=10**5)
    cell_size: int = setting(1024, help="width of the cells", least=1, most=10**6)
    layers: int = setting(2, help="layers of a direction", least=1, most=100)
    word_size: int = setting(100, help="width of the vectors of whole words", least=1, most=10**5)
    character_size: int = setting(16, help="width of the vectors of characters", least=1, most=10**5)
    most_characters: int = setting(30, help="characters of a word that are read", least=5, most=1000)
    samples: int = setting(8192, help="words of the sampled softmax", least=1, most=10**7)
    min_count: int = setting(3, help="rarer words are unknown ones", least=1, most=10**6)
    dropout: float = setting(0.1, help="dropout", least=0, below=1)
    batch_size: int = setting(32, help="pieces of a batch", least=1, most=10**6)
    piece_words: int = setting(20, help="words of a piece", least=6, most=10**4)
    learning_rate: float = setting(1e-3, help="peak of the learning rate of Adam", above=0, most=1e3)
    words: int = setting(3_000_000, help="words of the text that are read, again and again", least=1, most=10**9)


def train(training: Training) -> None:
    """Train with the package's own trainer until the time is over."""
    from downstream.peers.many_langs_training import train_model
    from elmoc.interop.many_langs import read_many_langs

    settings = training.settings
    if settings.samples <= settings.batch_size * (settings.piece_words + 5):  # the last piece is longer by up to five
        raise InputError(
            f"--samples {settings.samples} is too few, as the sampled softmax needs more words than a batch can have "
            f"(--batch-size × (--piece-words + 5) = {settings.batch_size * (settings.piece_words + 5)}): give more"
        )
    train_model(training)
    read_many_langs(training.directory.model).write(imported(training.directory.model))


def imported(model: Path) -> Path:
    """The model directory that our import makes of the package's files, beside them."""
    return model.with_name("imported")


class ManyLangs:
    """The layers of a trained model, as our import of it computes them."""

    def __init__(self, folder: Path, record: PeerRecord) -> None:
        from elmoc.model import ElmoC

        self._model = ElmoC.from_pretrained(imported(folder), precision="float32")
        self.layers, self.width = self._model.layers, self._model.width

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """float32 [layers, n, width] for each sentence of n words."""
        return [states.numpy() for states in self._model.embed_batch(sentences)]


PEER = Peer(
    name="many_langs",
    what="ELMoForManyLangs",
    settings=ManyLangsSettings(),
    packages=("elmoformanylangs",),
    dump_packages=(),
    train=train,
    load=ManyLangs,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m downstream.peers.many_langs` with `arguments`, by default those of the process."""
    return run_peer(PEER, arguments)


if __name__ == "__main__":
    sys.exit(main())
