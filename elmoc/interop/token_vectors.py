"""Token vectors: one vector for each token of another library, whose tokens may hold
blanks, from chosen layers.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from elmoc.batches import BATCH_SIZE
from elmoc.encoders.pooling import pooled
from elmoc.model import ElmoC


def token_vectors(
    model: ElmoC,
    sentences: Iterable[Iterable[Any]],
    layers: str | Sequence[int],
    *,
    batch_size: int = BATCH_SIZE,
) -> list[Tensor]:
    """float32 [n, width] of sentences of n tokens, on the CPU.

    Words of an encoder hold no white space. A token that does is read as the words
    between, and its vector is their mean; a token of white space alone is not read, and
    its vector is zeros.

    Args:
        model: the encoder.
        sentences: of tokens of spaCy or of flair, which have a `text`.
        layers: see `SentenceEncoder.choose_layers`; several are concatenated.
        batch_size: sentences a batch at most.
    """
    _, select = model.choose_layers(layers)
    words = []
    bounds = []
    for sentence in sentences:
        split = [token.text.split() for token in sentence]
        words.append(list(chain.from_iterable(split)))
        bounds.append(torch.tensor([0, *map(len, split)], device="cpu").cumsum(0))
    states = model.embed_batch(words, batch_size=batch_size)
    # [layers, n, 2P], or of one layer [n, 2P]; then [n, width]
    return [
        pooled(select(each), own, "mean").movedim(-2, 0).flatten(1)
        for each, own in zip(states, bounds, strict=True)
    ]
