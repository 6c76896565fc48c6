"""Modules: what puts an `ElmoC` into a PyTorch model of one's own.

`LayerStates` computes the layer states of a batch, with a frozen encoder or a trained
one; `ScalarMix` is the trained weighting of layers; `ElmoEmbedding` is both together,
with dropout.
Letters: B sentences of a batch, T the longest of them in tokens, P projection, L
layers.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from elmoc.errors import InputError, reading
from elmoc.model import ElmoC, with_encoder
from elmoc.word_vectors.stored import as_bytes, from_bytes

# Added to the variance, as AllenNLP does.
NORM_EPSILON = 1e-13


class LayerStates(nn.Module):
    """The layer states of sentences in a padded batch, each from zero state between
    `<s>` and `</s>`.

    Without `requires_grad` the encoder is `elmo`'s, runs without autograd and dropout
    whatever the mode, and is no part of the state dict. Trained on, it is a copy, a
    submodule like any other. The word vectors are never trained on and never in the
    state dict: the module is made from the same model to load one. So the state dict
    names what it lacks, and that of another model is an `InputError`.
    """

    def __init__(self, elmo: ElmoC, *, requires_grad: bool = False) -> None:
        super().__init__()
        self._elmo = elmo
        self.encoder = None
        if requires_grad:
            if elmo.asked_precision == "int8":
                raise InputError(
                    "precision int8 is for inference alone: a model that is trained "
                    "needs float32, bf16 or auto"
                )
            # The model itself never changes.
            self.encoder = deepcopy(elmo.encoder).requires_grad_().train()
        # It moves with the module, and so tells where it is and in which type.
        self.register_buffer(
            "_place",
            torch.empty(0, dtype=torch.float32, device=elmo.device),
            persistent=False,
        )

    @property
    def elmo(self) -> ElmoC:
        """The model with the encoder as it is now: a copy where it is trained."""
        if self.encoder is None:
            return self._elmo
        # The eight bits of a packed model would not keep what was trained, and metrics
        # were of the weights before.
        training = dict(self._elmo.directory.training)
        training.pop("held_out", None)
        return with_encoder(
            self._elmo,
            deepcopy(self.encoder).float().requires_grad_(False),
            weight_type="float32",
            training=training,
        )

    def get_extra_state(self) -> Tensor:
        """The names of what layer states depend on and the state dict lacks, as bytes:
        files of tensors hold nothing else.
        """
        return as_bytes(self._names())

    def set_extra_state(self, state: Tensor) -> None:
        """Compare the names of a state dict with those of the model.

        Raises:
            InputError: they are others.
        """
        with reading("the model that a state dict names"):
            theirs = from_bytes(state.to("cpu", torch.uint8), str)
        if self._names() != theirs:
            raise InputError(
                f"the state dict is of a module made from a model with {theirs}; this "
                f"module was made from a model with {self._names()}: make it from that "
                "model, with the same requires_grad"
            )

    def _names(self) -> str:
        encoder = self._elmo.fingerprint if self.encoder is None else "trained on"
        return (
            f"encoder {encoder}, word vectors {self._elmo.word_vectors.fingerprint}, "
            f"pooling {self._elmo.subword_pooling}, settings "
            f"{self._elmo.identity['settings']}"
        )

    def forward(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Compute the layer states of a batch.

        Returns:
            Layer states [B, L + 1, T + 2, 2P], zeros where there is padding; and bool
            [B, T + 2], true where there is none.
        """
        place = self.get_buffer("_place")
        rows = self._elmo.look_up(sentences, as_vectors=self.encoder is not None)
        if not rows.ids:
            states = place.new_zeros(0, self._elmo.layers, 2, self._elmo.width)
            return states, place.new_zeros(0, 2, dtype=torch.bool)
        # [L + 1, n + 2, 2P] each
        if self.encoder is None:
            self._elmo = self._elmo.to(place.device)
            read = self._elmo.encode(rows, boundaries=True, device=place.device)
        else:
            vectors, lengths = rows.padded()
            padded = self.encoder(vectors.to(place), lengths.to(place.device))
            read = [
                self._elmo.words_of(
                    rows, index, padded[index, :, :length], boundaries=True
                )
                for index, length in enumerate(lengths.tolist())
            ]
        turned = [each.transpose(0, 1) for each in read]
        states = pad_sequence(turned, batch_first=True).transpose(1, 2).to(place)
        present = [place.new_ones(len(each), dtype=torch.bool) for each in turned]
        return states, pad_sequence(present, batch_first=True)


class ScalarMix(nn.Module):
    """gamma · Σ_l softmax(weights)_l · states_l (Peters et al. 2018, equation 1), as
    AllenNLP's module of that name.

    Args:
        layers: how many there are.
        weights: before the softmax; zeros, which give the mean, where None is given.
        layer_norm: whether each layer is first brought to mean 0 and variance 1, over
            all numbers of a batch that are not padding.
        trainable: whether weights and gamma are trained.
        device, dtype: of both, as PyTorch's modules have them.
    """

    def __init__(
        self,
        layers: int,
        *,
        weights: Sequence[float] | None = None,
        layer_norm: bool = False,
        trainable: bool = True,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        gamma = torch.ones(1, device=device, dtype=dtype)
        values = gamma.new_tensor([0.0] * layers if weights is None else weights)
        self.weights = nn.Parameter(values, requires_grad=trainable)  # [L + 1]
        self.gamma = nn.Parameter(gamma, requires_grad=trainable)
        self.layer_norm = layer_norm

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the layers.

        Args:
            states: [B, L + 1, T, D].
            mask: bool [B, T], true where there is a word; by default everywhere.

        Returns:
            [B, T, D].

        Raises:
            InputError: there is another number of layers than of weights.
        """
        if states.shape[1] != len(self.weights):
            raise InputError(
                f"{states.shape[1]} layers are mixed by {len(self.weights)} weights: "
                "give as many"
            )
        if self.layer_norm:
            if mask is None:
                mask = torch.ones_like(states[:, 0, :, 0], dtype=torch.bool)
            # Sums in float16 would overflow.
            exact = states.to(torch.promote_types(states.dtype, torch.float32))
            kept = mask[:, None, :, None].to(exact.dtype)  # [B, 1, T, 1]
            count = mask.sum().clamp(min=1) * states.shape[-1]
            total = (exact * kept).sum((0, 2, 3), keepdim=True)  # [1, L + 1, 1, 1]
            centred = exact - total / count
            squares = (centred.square() * kept).sum((0, 2, 3), keepdim=True)
            exact = centred / (squares / count + NORM_EPSILON).sqrt()
            states = exact.to(states.dtype)
        return self.gamma * torch.einsum("l,bltd->btd", self.weights.softmax(0), states)


class ElmoRepresentations(NamedTuple):
    """A batch of B sentences, the longest of T tokens, as an `ElmoEmbedding` has it.

    representations: [B, T, 2P] for each scalar mix; zeros where there is padding.
    mask: bool [B, T], true where there is a token.
    """

    representations: list[Tensor]
    mask: Tensor


class ElmoEmbedding(nn.Module):
    """Scalar mixes of the layer states of sentences, with dropout (Peters et al. 2018,
    Section 3.2).

        embedding = ElmoEmbedding(ElmoC.from_pretrained("runs/mine"), dropout=0.2)
        representations, mask = embedding([["The", "cat", "sat", "."], ["Stop", "!"]])

    What AllenNLP's `Elmo` does, for lists of tokens. The state dict holds the mixes,
    and the encoder where that is trained on; never the word vectors. It loads into a
    module that was made from the same model.

    Args:
        elmo: the model.
        num_output_representations: how many mixes, each with its own weights; e.g. 2
            for a task model that reads one in its first layer and one in its last.
        dropout: of the representations, in training.
        requires_grad: whether the encoder is trained on; its own dropout then runs in
            training, too.
        layer_norm: whether the mixes normalise the layers first.
        mix_weights: of every mix, before the softmax; the mixes are not trained then.
            By default they are zeros, which give the mean, and trained.
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
            ScalarMix(
                elmo.layers,
                weights=mix_weights,
                layer_norm=layer_norm,
                trainable=mix_weights is None,
                device=elmo.device,
                dtype=torch.float32,
            )
            for _ in range(num_output_representations)
        )
        self.dropout = nn.Dropout(dropout)

    @property
    def output_size(self) -> int:
        """2P: the width of a representation."""
        return self.states._elmo.width

    @property
    def elmo(self) -> ElmoC:
        """The model with the encoder as it is now; of one that was trained on,
        `save_pretrained` keeps the training.
        """
        return self.states.elmo

    def forward(self, sentences: Sequence[Sequence[str]]) -> ElmoRepresentations:
        """The representations of a batch of lists of tokens, computed at once."""
        states, mask = self.states(sentences)
        # n tokens with their two boundaries are n + 2 positions.
        words = mask[:, 2:]
        mixed = [self.dropout(mix(states, mask)[:, 1:-1]) for mix in self.mixes]
        kept = [torch.where(words.unsqueeze(-1), each, 0.0) for each in mixed]
        return ElmoRepresentations(kept, words)
