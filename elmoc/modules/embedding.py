"""ElmoEmbedding: contextual word representations as a layer of a PyTorch model, mixed from the layers of an `ElmoC`.

from elmoc import ElmoC, ElmoEmbedding
embedding = ElmoEmbedding(ElmoC.from_pretrained("runs/quickstart/run"), dropout=0.2)
representations, mask = embedding([["The", "cat", "sat", "."], ["Stop", "!"]])  # a list of one [B, T, 2P], and [B, T]
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from elmoc.model import ElmoC
from elmoc.modules.layer_states import LayerStates
from elmoc.modules.scalar_mix import ScalarMix


class ElmoRepresentations(NamedTuple):
    """What an `ElmoEmbedding` makes of a batch of B sentences, the longest of T tokens."""

    representations: list[Tensor]  # [B, T, 2P] for each scalar mix; zeros where there is padding
    mask: Tensor  # bool [B, T], where there is a token


class ElmoEmbedding(nn.Module):
    """Scalar mixes of the layer states of sentences, with dropout (Peters et al. 2018, Section 3.2).

    What AllenNLP's `Elmo` does, for lists of tokens. The state dict holds the mixes, and the encoder where that is
    trained on; never the word vectors.

    Args:
        elmo: the model.
        num_output_representations: how many mixes, each with its own weights; e.g. 2 for a task model that reads one
            in its first layer and one in its last.
        dropout: of the representations, in training.
        requires_grad: whether the encoder is trained on; its own dropout then runs in training, too.
        layer_norm: whether the mixes normalise the layers first.
        mix_weights: of every mix, before the softmax; the mixes are not trained then. By default they are zeros, which
            give the mean, and trained.
    """

    def __init__(
        self,
        elmo: ElmoC,
        *,
        num_output_representations: int = 1,
        dropout: float = 0.5,
        requires_grad: bool = False,
        layer_norm: bool = False,
        mix_weights: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.states = LayerStates(elmo, requires_grad=requires_grad)
        self.mixes = nn.ModuleList(
            ScalarMix(elmo.layers, weights=mix_weights, layer_norm=layer_norm, trainable=mix_weights is None)
            for _ in range(num_output_representations)
        ).to(elmo.device)
        self.dropout = nn.Dropout(dropout)

    @property
    def output_size(self) -> int:
        """2P: the width of a representation."""
        return self.elmo.width

    @property
    def elmo(self) -> ElmoC:
        """The model with the encoder as it is now; of one that was trained on, `save_pretrained` keeps the training."""
        return self.states.elmo

    def forward(self, sentences: Sequence[Sequence[str]]) -> ElmoRepresentations:
        """The representations of a batch of lists of tokens, computed at once."""
        states, mask = self.states(sentences)
        words = mask[:, 2:]  # n tokens with their two boundaries are n + 2 positions
        mixed = [self.dropout(mix(states, mask)[:, 1:-1]) for mix in self.mixes]
        return ElmoRepresentations([torch.where(words.unsqueeze(-1), each, 0.0) for each in mixed], words)
