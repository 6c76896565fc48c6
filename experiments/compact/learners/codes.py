"""Compositional codes: the sum of which codewords, one of each codebook, is a word's
vector, and how are they used?

The Gumbel-softmax auto-encoder of Shu and Nakayama (2018, Section 4), with the values
of its Section 5.1.
Letters: n words, E width of vectors, M codebooks, K entries of each.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.errors import say
from elmoc.word_vectors.coded_rows import CodedRows, pack_codes
from elmoc.word_vectors.compact import CompactVectors
from experiments.compact.learners.learning import learn, squared_distance
from experiments.compact.learners.options import CompactOptions

# Words of an update, and Adam's rate (Section 5.1).
BATCH = 128
LEARNING_RATE = 1e-4
# Weights begin uniform within it, as in the authors' code.
FIRST_WEIGHTS = 0.01
# The mean square of a number that vectors are scaled to before they are learned, about
# as in the GloVe vectors for which the paper's rate and temperature were chosen.
MEAN_SQUARE = 0.13
# Words that are encoded at once, and that the error is measured on after each part.
ENCODED = 4_096
# What keeps the logarithm of a score finite, as in the authors' code.
LEAST_SCORE = 1e-8
# The most frequent words, whose codes are compared.
COMPARED = 5_000


class CodeLearner(nn.Module):
    """An auto-encoder with M choices among K codewords in its middle: equations 5 to 9
    of the paper.
    """

    def __init__(self, size: int, codebooks: int, entries: int) -> None:
        super().__init__()
        inner_size = codebooks * entries // 2
        self.hidden = nn.Linear(size, inner_size)
        self.scores = nn.Linear(inner_size, codebooks * entries)
        self.codebooks = nn.Parameter(torch.empty(codebooks, entries, size))
        for weight in self.parameters():
            nn.init.uniform_(weight, -FIRST_WEIGHTS, FIRST_WEIGHTS)

    def log_scores(self, vectors: Tensor) -> Tensor:
        """Vectors [n, E] → log α [n, M, K]."""
        scores = F.softplus(self.scores(torch.tanh(self.hidden(vectors))))
        return (scores + LEAST_SCORE).log().view(-1, *self.codebooks.shape[:2])

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors [n, E] → reconstructions [n, E], and the choices d [n, M, K], with
        noise that is drawn, and the paper's temperature of 1.
        """
        choices = F.gumbel_softmax(self.log_scores(vectors), dim=2)
        return choices.flatten(1) @ self.codebooks.flatten(0, 1), choices

    @torch.no_grad()
    def encode(self, vectors: Tensor) -> Tensor:
        """The code int64 [n, M] of each vector [n, E]: the likeliest entries, without
        noise.
        """
        blocks = vectors.split(ENCODED)
        return torch.cat([self.log_scores(block).argmax(dim=2) for block in blocks])


def learn_codes(
    words: Sequence[str], rows: np.ndarray, options: CompactOptions
) -> CompactVectors:
    """Codes and codebooks for the vectors of words, the same from the same seed.

    Args:
        words: n of them.
        rows: their vectors, float32 [n, E].
        options: how they are learned.
    """
    mean = rows.mean(axis=0)
    centred = rows - mean
    # vectors that are all the same have no scale
    mean_square = max(float(np.square(centred).mean()), 1e-30)
    scale = float(np.sqrt(MEAN_SQUARE / mean_square))
    vectors = torch.from_numpy(centred * np.float32(scale))
    torch.manual_seed(options.seed)
    learner = CodeLearner(rows.shape[1], options.codebooks, options.entries)
    validated = vectors[torch.randperm(len(vectors))[:ENCODED]]
    books = torch.arange(options.codebooks)

    def loss() -> Tensor:
        batch = vectors[torch.randint(len(vectors), (BATCH,))]
        made, _ = learner(batch)
        return squared_distance(batch, made)

    @torch.no_grad()
    def error() -> float:
        made = learner.codebooks[books, learner.encode(validated)].sum(dim=1)
        return float(squared_distance(validated, made)) / scale**2

    learn(
        learner,
        loss,
        error,
        steps=options.steps,
        learning_rate=options.learning_rate or LEARNING_RATE,
    )
    codes = learner.encode(vectors).numpy()
    say_usage(codes, rows, options.entries)
    coded = CodedRows(
        "summed",
        codes=pack_codes(codes, options.entries),
        codebooks=(learner.codebooks.detach().numpy() / scale).astype(np.float16),
        mean=mean,
    )
    return CompactVectors.of_words(words, coded)


def say_usage(codes: np.ndarray, rows: np.ndarray, entries: int) -> None:
    """Say which share of the words have the rarest codeword (Section 6.2), and which
    share of its codes a frequent word has in common with the one that is nearest to it,
    and with any other (Section 6.1).

    Args:
        codes: int64 [n, M], the most frequent word first.
        rows: the vectors of the words, float32 [n, E].
        entries: K.
    """
    rarest = min(np.bincount(each, minlength=entries).min() for each in codes.T)
    units = F.normalize(torch.from_numpy(rows[:COMPARED])).numpy()
    cosines = units @ units.T
    np.fill_diagonal(cosines, -1)
    first = codes[:COMPARED]
    nearest = (first == first[cosines.argmax(axis=1)]).mean()
    other = (first == np.roll(first, 1, axis=0)).mean()
    say(
        f"the rarest codeword stands for {rarest / len(codes):.2%} of the words; "
        f"nearest words share {nearest:.1%} of their codes, others {other:.1%}"
    )
