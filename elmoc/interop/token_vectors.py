"""Token vectors: one vector for each token of another library, whose tokens may hold blanks, from chosen layers."""

from collections.abc import Sequence

import torch
from torch import Tensor

from elmoc.errors import InputError, shortened
from elmoc.model import BATCH_SIZE, ElmoC

NAMED = ("average", "top", "all")


class LayerChoice:
    """The layers of a token's vector: `average` (the mean), `top`, `all`, or indices such as `[0, 2]`, concatenated."""

    def __init__(self, layers: str | Sequence[int]) -> None:
        indices = isinstance(layers, Sequence) and all(type(layer) is int for layer in layers)
        if not (layers in NAMED if isinstance(layers, str) else layers and indices):
            raise InputError(
                f"layers are {', '.join(NAMED)} or a list of indices such as [0, 2]; not {shortened(repr(layers))}"
            )
        self.layers = layers if isinstance(layers, str) else tuple(layers)

    def __str__(self) -> str:
        return self.layers if isinstance(self.layers, str) else ",".join(map(str, self.layers))

    def width(self, model: ElmoC) -> int:
        """The width of a token's vector; an `InputError` where the model lacks one of the layers."""
        return len(self._indices(model.layers)) * model.width

    def of(self, states: Tensor) -> Tensor:
        """[n, width] of layer states [L + 1, n, 2P]."""
        if self.layers == "average":
            return states.mean(dim=0)
        return torch.cat([states[index] for index in self._indices(len(states))], dim=-1)

    def _indices(self, count: int) -> Sequence[int]:
        if isinstance(self.layers, str):
            return range(count) if self.layers == "all" else [count - 1]
        if not all(0 <= index < count for index in self.layers):
            raise InputError(f"layers {self} are chosen, but the model has layers 0 to {count - 1}: choose among them")
        return self.layers


def token_vectors(
    model: ElmoC, sentences: Sequence[Sequence[str]], layers: LayerChoice, *, batch_size: int = BATCH_SIZE
) -> list[Tensor]:
    """float32 [n, width] of sentences of n tokens, on the CPU.

    Words of an encoder hold no white space. A token that does is read as the words between, and its vector is their
    mean; one of white space alone is not read, and its vector is zeros.
    """
    words = [[token.split() for token in sentence] for sentence in sentences]
    states = model.embed_batch(
        [[word for token in sentence for word in token] for sentence in words], batch_size=batch_size
    )
    return [
        _mean_over_words(layers.of(each), [len(token) for token in sentence])
        for each, sentence in zip(states, words, strict=True)
    ]


def _mean_over_words(vectors: Tensor, lengths: Sequence[int]) -> Tensor:
    """[n, D]: the means over the `lengths[i]` rows of each token, in order; zeros for none."""
    if all(length == 1 for length in lengths):
        return vectors
    of_token = torch.tensor(lengths)
    tokens = torch.repeat_interleave(torch.arange(len(lengths)), of_token)
    sums = vectors.new_zeros(len(lengths), vectors.shape[1]).index_add_(0, tokens, vectors)
    return sums / of_token.clamp(min=1).unsqueeze(1)
