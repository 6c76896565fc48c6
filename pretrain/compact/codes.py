"""Compositional codes: the sum of which codewords, one of each codebook, is a word's
vector, and how are they used?

The Gumbel-softmax auto-encoder of Shu and Nakayama (2018, Section 4), with the values
of its Section 5.1.
Letters: n words, E width of vectors, M codebooks, K entries of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from msgspec import Meta
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from elmoc.word_vectors.coded_rows import CodedRows, pack_codes
from pretrain.compact.learning import LearnerSettings, learn, squared_distance

# Words of an update, and τ, in the paper.
BATCH = 128
TEMPERATURE = 1.0
# Weights begin uniform within it, as in the authors' code.
FIRST_WEIGHTS = 0.01
# The mean square of a number that vectors are scaled to before they are learned, about
# as in the GloVe vectors for which the paper's rate and temperature were chosen.
MEAN_SQUARE = 0.13
# Words that the error is measured on after each part, and words that are encoded at
# once.
VALIDATED = ENCODED = 4_096
# What keeps the logarithm of a score finite, as in the authors' code.
LEAST_SCORE = 1e-8
# Words whose nearest neighbours are looked for, among this number of the most frequent
# words.
ASKED = 500
NEIGHBOURS_AMONG = 20_000


@dataclass(frozen=True, kw_only=True)
class CodeSettings(LearnerSettings):
    """How codes are learned; the defaults are the paper's."""

    codebooks: Annotated[int, Meta(ge=1, le=1_024, description="M")] = 32
    entries: Annotated[
        int, Meta(ge=2, le=1 << 16, description="K, the entries of each codebook")
    ] = 16
    steps: Annotated[int, Meta(ge=1, description="updates")] = 200_000


class CodeLearner(nn.Module):
    """An auto-encoder with M choices among K codewords in its middle: equations 5 to 9
    of the paper.
    """

    def __init__(self, size: int, codebooks: int, entries: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(size, codebooks * entries // 2)
        self.scores = nn.Linear(codebooks * entries // 2, codebooks * entries)
        self.codebooks = nn.Parameter(torch.empty(codebooks, entries, size))
        for weight in self.parameters():
            nn.init.uniform_(weight, -FIRST_WEIGHTS, FIRST_WEIGHTS)

    def log_scores(self, vectors: Tensor) -> Tensor:
        """Vectors [n, E] → log α [n, M, K]."""
        scores = F.softplus(self.scores(torch.tanh(self.hidden(vectors))))
        return (scores + LEAST_SCORE).log().view(-1, *self.codebooks.shape[:2])

    def forward(self, vectors: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors [n, E] and noise G [n, M, K] → reconstructions [n, E], and the
        choices d [n, M, K].
        """
        choices = ((self.log_scores(vectors) + noise) / TEMPERATURE).softmax(dim=2)
        return choices.flatten(1) @ self.codebooks.flatten(0, 1), choices

    def encode(self, vectors: Tensor) -> Tensor:
        """The code int64 [n, M] of each vector [n, E]: the likeliest entries, without
        noise.
        """
        return torch.cat(
            [self.log_scores(block).argmax(dim=2) for block in vectors.split(ENCODED)]
        )


def gumbel_noise(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """− log(− log U), of a uniform U: − log of an exponential number."""
    return -torch.empty(shape).exponential_(generator=generator).log()


def learn_codes(
    words: Sequence[str], rows: np.ndarray, settings: CodeSettings
) -> tuple[CodedRows, list[str]]:
    """Codes and codebooks for vectors float32 [n, E], the same from the same seed, and
    lines to print.
    """
    mean = rows.mean(axis=0)
    scale = float(
        np.sqrt(MEAN_SQUARE / max(float(np.square(rows - mean).mean()), 1e-30))
    )
    vectors = torch.from_numpy((rows - mean) * np.float32(scale))
    shape = settings.codebooks, settings.entries
    torch.manual_seed(settings.seed)
    learner = CodeLearner(rows.shape[1], *shape)
    validated = vectors[torch.randperm(len(vectors))[:VALIDATED]]

    def loss(generator: Generator) -> Tensor:
        batch = vectors[torch.randint(len(vectors), (BATCH,), generator=generator)]
        return squared_distance(
            batch, learner(batch, gumbel_noise((len(batch), *shape), generator))[0]
        )

    @torch.no_grad()
    def error() -> float:
        made = learner.codebooks[
            torch.arange(settings.codebooks), learner.encode(validated)
        ].sum(dim=1)
        return float(squared_distance(validated, made)) / scale**2

    learn(learner, loss, error, settings, settings.steps)
    with torch.no_grad():
        some = validated[:512]
        choices = learner(
            some,
            gumbel_noise((len(some), *shape), Generator().manual_seed(settings.seed)),
        )[1]
        print(
            f"largest choice d of each codebook, with noise, on average: {float(choices.amax(dim=2).mean()):.3f}"
        )
        codes = learner.encode(vectors).numpy()
    codebooks = (learner.codebooks.detach().numpy() / scale).astype(np.float16)
    learned = CodedRows(
        "summed",
        codes=pack_codes(codes, settings.entries),
        codebooks=codebooks,
        mean=mean,
    )
    return learned, [balance(codes, settings.entries), shared_codes(rows, codes)]


def balance(codes: np.ndarray, entries: int) -> str:
    """The share of words that a codeword has (Figure 3 of the paper), its entropy, and
    unused codewords.
    """
    shares = np.stack(
        [np.bincount(column, minlength=entries) for column in codes.T]
    ) / len(codes)  # [M, K]
    bits = (
        -(shares * np.log2(shares, out=np.zeros_like(shares), where=shares > 0))
        .sum(axis=1)
        .mean()
    )
    return (
        f"share of words a codeword: {shares.min():.2%} to {shares.max():.1%}; {bits:.2f} of {np.log2(entries):.2f} "
        f"bits a codebook; unused codewords: {(shares == 0).sum():,} of {shares.size:,}"
    )


def shared_codes(rows: np.ndarray, codes: np.ndarray) -> str:
    """How many of its M codes a word shares with its nearest neighbour by cosine,
    beside any other word.
    """
    rows = rows[:NEIGHBOURS_AMONG] - rows.mean(axis=0)
    codes = codes[:NEIGHBOURS_AMONG]
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
    asked = np.linspace(0, len(rows) - 1, min(ASKED, len(rows))).astype(int)
    cosines = rows[asked] @ rows.T
    cosines[np.arange(len(asked)), asked] = -1
    same, other = (
        (codes[asked] == codes[those]).mean()
        for those in (cosines.argmax(axis=1), np.roll(asked, 1))
    )
    _, members, counts = np.unique(
        codes, axis=0, return_inverse=True, return_counts=True
    )
    text = (
        f"codes shared with the nearest word: {same:.1%}, with another one: {other:.1%}"
    )
    return f"{text}; words with the whole code of another: {(counts[members] > 1).mean():.1%}"
