"""Static vectors: words without context out of a Hugging Face model, as model2vec makes
them.

    python -m experiments.peers.static_vectors MODEL OUT.vec --sentences FILE

MODEL is a folder with the model and its fast tokenizer. Each subword goes through it
alone; its vector is the mean of the last layer, special subwords included, reduced to
256 numbers by principal components and weighted by its rank, as is model2vec's default
(vocabularies of WordPiece are nearly in order of frequency). A word is the mean of its
subwords. OUT.vec has the words of FILE, one tokenised sentence a line, unless it is
there.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch

from elmoc.command_line import run_main
from elmoc.files.writing import atomic_path
from elmoc.settings import Meta
from experiments.peers.pretrained import Encoder, open_encoder

WIDTH = 256
# Of smooth inverse frequency, and the subwords that are left out.
FREQUENCY_WEIGHT = 1e-4
UNUSED = re.compile(r"\[unused\d+\]")
BATCH = 256


@dataclass(frozen=True)
class Options:
    """The model, and the words."""

    model: Annotated[Path, Meta(description="folder of the model and its tokenizer")]
    out: Annotated[Path, Meta(description="file of word vectors, such as OUT.vec")]
    sentences: Annotated[
        Path,
        Meta(
            description="one tokenised sentence a line",
            extra={"option": "--sentences", "metavar": "FILE"},
        ),
    ]
    threads: Annotated[int, Meta(ge=1, description="threads that compute")] = 1


@torch.inference_mode()
def piece_vectors(encoder: Encoder) -> np.ndarray:
    """float64 [V, WIDTH]: the vector of each subword, by its number; zeros for those
    that are left out.
    """
    # In the order of their numbers.
    numbers = encoder.tokenizer.get_vocab()
    names = sorted(numbers, key=numbers.__getitem__)
    kept = [numbers[name] for name in names if not UNUSED.fullmatch(name)]
    read = []
    for start in range(0, len(kept), BATCH):
        lines = [
            [*encoder.begin, id, *encoder.end] for id in kept[start : start + BATCH]
        ]
        # All have the same length, so that nothing is padded.
        states = encoder.model(torch.tensor(lines)).last_hidden_state  # [B, T, size]
        read.append(states.float().mean(dim=1))
    found = torch.cat(read).double().numpy()  # [kept, size]
    centred = found - found.mean(axis=0)
    # Eigenvalues rise: the last directions vary most.
    _, directions = np.linalg.eigh(centred.T @ centred)
    components = centred @ directions[:, : -WIDTH - 1 : -1]
    # By Zipf's law, as if the first subword had rank 2.
    shares = 1 / np.arange(2, len(kept) + 2)
    shares /= shares.sum()
    weights = FREQUENCY_WEIGHT / (FREQUENCY_WEIGHT + shares)
    vectors = np.zeros((max(numbers.values()) + 1, WIDTH))
    vectors[kept] = components * weights[:, None]
    return vectors


def word_vectors(
    encoder: Encoder, vectors: np.ndarray, words: Sequence[str]
) -> np.ndarray:
    """[n, WIDTH]: the mean of the subwords' vectors [V, WIDTH] of each word."""
    return np.stack([vectors[encoder.divide(word)].mean(axis=0) for word in words])


def write(options: Options) -> None:
    """Write the vectors."""
    torch.set_num_threads(options.threads)
    # Principal components are sensitive to rounding, and this is done once.
    encoder = open_encoder(options.model, bf16=False)
    words = list(dict.fromkeys(options.sentences.read_text(encoding="utf-8").split()))
    found = word_vectors(encoder, piece_vectors(encoder), words)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with (
        atomic_path(options.out) as partial,
        open(partial, "w", encoding="utf-8") as file,
    ):
        file.write(f"{len(words)} {WIDTH}\n")
        for word, vector in zip(words, found, strict=True):
            numbers = " ".join(f"{number:.6g}" for number in vector)
            file.write(f"{word} {numbers}\n")


if __name__ == "__main__":
    sys.exit(
        run_main(
            Options,
            write,
            None,
            prog="python -m experiments.peers.static_vectors",
            description="Write static word vectors of a Hugging Face model.",
        )
    )
