"""Layer states of a batch: a PyTorch module around an `ElmoC`, frozen or trained on.

Letters: B sentences of a batch, T the longest of them in tokens, P projection, L layers.
"""

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from elmoc.model import ElmoC


class LayerStates(nn.Module):
    """The layer states of sentences in a padded batch, each from zero state between `<s>` and `</s>`.

    Without `requires_grad` the encoder is that of `elmo`, runs without autograd and dropout whatever the mode, and is
    no part of the state dict. Trained on, it is a copy, a submodule like any other. The word vectors are never trained
    on and never in the state dict: the module is made from the same model to load one.
    """

    def __init__(self, elmo: ElmoC, *, requires_grad: bool = False) -> None:
        super().__init__()
        self._elmo = elmo
        self.encoder = deepcopy(elmo.encoder).requires_grad_().train() if requires_grad else None
        self.register_buffer("_place", torch.empty(0, device=elmo.device), persistent=False)  # moves with the module

    @property
    def elmo(self) -> ElmoC:
        """The model with the encoder as it is now: one that was trained on is copied."""
        if self.encoder is None:
            return self._elmo
        return self._elmo.with_encoder(deepcopy(self.encoder).requires_grad_(False))

    def forward(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Layer states [B, L + 1, T + 2, 2P], zeros where there is padding, and bool [B, T + 2], where none is."""
        place = self._place
        assert isinstance(place, Tensor)
        if not sentences:
            return place.new_zeros(0, self._elmo.layers, 2, self._elmo.width), place.new_zeros(0, 2, dtype=torch.bool)
        rows = self._elmo.look_up(sentences)
        vectors, lengths = rows.padded()
        if self.encoder is None:
            if self._elmo.device != place.device:
                self._elmo = self._elmo.to(place.device)
            encoded = self._elmo.encode(vectors, lengths)
            states = encoded.to(place.dtype, copy=True)  # no inference tensor, which autograd cannot save
        else:
            weight = next(self.encoder.parameters())
            states = self.encoder(vectors.to(weight), lengths.to(weight.device))
        states, lengths = self._elmo.of_words(rows, states, lengths)
        mask = torch.arange(states.shape[2], device=states.device) < lengths.to(states.device).unsqueeze(1)
        return states.masked_fill(~mask[:, None, :, None], 0.0), mask
