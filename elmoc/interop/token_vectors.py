"""Token vectors: one vector for each token of another library, whose tokens may hold
blanks, from chosen layers.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from elmoc.batches import BATCH_SIZE
from elmoc.model import ElmoC


def token_vectors(
    model: ElmoC,
    sentences: Sequence[Sequence[str]],
    layers: str | Sequence[int],
    *,
    batch_size: int = BATCH_SIZE,
) -> list[Tensor]:
    """float32 [n, width] of sentences of n tokens, on the CPU.

    Several `layers` (see `SentenceEncoder.choose_layers`) are concatenated.
    Words of an encoder hold no white space. A token that does is read as the words
    between, and its vector is their mean; one of white space alone is not read, and its
    vector is zeros.
    """
    _, select = model.sentence_encoder.choose_layers(layers)
    words = [[token.split() for token in sentence] for sentence in sentences]
    states = model.embed_batch(
        [[word for token in sentence for word in token] for sentence in words],
        batch_size=batch_size,
    )
    vectors = []
    for each, sentence in zip(map(select, states), words, strict=True):
        side_by_side = (
            each if each.ndim == 2 else torch.cat(each.unbind(), dim=-1)
        )  # [n, width]
        vectors.append(
            _mean_over_words(side_by_side, [len(token) for token in sentence])
        )
    return vectors


def _mean_over_words(vectors: Tensor, lengths: Sequence[int]) -> Tensor:
    """[n, D]: the means over the `lengths[i]` rows of each token, in order; zeros for
    none.
    """
    if all(length == 1 for length in lengths):
        return vectors
    of_token = torch.tensor(lengths)
    tokens = torch.repeat_interleave(torch.arange(len(lengths)), of_token)
    sums = vectors.new_zeros(len(lengths), vectors.shape[1]).index_add_(
        0, tokens, vectors
    )
    return sums / of_token.clamp(min=1).unsqueeze(1)
