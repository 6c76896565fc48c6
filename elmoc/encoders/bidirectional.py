"""The bidirectional encoder: one encoder and input layer a direction, without any
weight in common.

Letters: B sentences of a batch, T time, E word-vector width, P projection, L layers.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from elmoc.encoders import (
    DIRECTIONS,
    Encoder,
    EncoderOutput,
    EncoderSizes,
    EncoderState,
    lstm,
    plain_lstm,
    transformer,
)
from elmoc.errors import InputError, reading
from elmoc.files.checksums import fingerprint
from elmoc.settings import convert
from elmoc.weights import check_weights, contiguous

# All encoders, by their names in configs and model directories.
ENCODERS: dict[str, type[EncoderSizes]] = {
    sizes.kind: sizes
    for sizes in (
        lstm.LstmSizes,
        plain_lstm.PlainLstmSizes,
        transformer.TransformerSizes,
    )
}


@dataclass(frozen=True)
class EncoderConfig:
    """An encoder whole: its own settings, and the width of the word vectors that it
    reads.
    """

    sizes: EncoderSizes = field(default_factory=lstm.LstmSizes)
    word_vector_size: int = 300

    def __post_init__(self) -> None:
        sizes = self.sizes
        if (
            sizes.input_layer == "identity"
            and sizes.projection_size != self.word_vector_size
        ):
            raise InputError(
                "encoder.input_layer is identity, but encoder.projection_size is "
                f"{sizes.projection_size} and the word vectors have "
                f"{self.word_vector_size} numbers"
            )

    def build_input_layer(self) -> nn.Module:
        """The module from word vectors [B, T, E] to layer 0 [B, T, P] of a direction,
        with random weights.

        A projection is a_t = LayerNorm(W_in x_t + b_in), of word vectors x_t (Li et al.
        2019, Section 4.1).
        """
        # in the original ELMo word vectors have the encoder's width
        if self.sizes.input_layer == "identity":
            return nn.Identity()
        size = self.sizes.projection_size
        return nn.Sequential(
            OrderedDict(
                projection=nn.Linear(self.word_vector_size, size),
                norm=nn.LayerNorm(size),
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """The `encoder` object of a model directory."""
        return {
            "kind": self.sizes.kind,
            **asdict(self.sizes),
            "word_vector_size": self.word_vector_size,
        }

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], *, word_vector_size: int, where: str
    ) -> "EncoderConfig":
        """The config in a model directory.

        Args:
            values: the `encoder` object.
            word_vector_size: of the word vectors that the directory names.
            where: the file, as errors call it.

        Raises:
            InputError: the object is damaged, or of another word vector size.
        """
        with reading(where):
            sizes = dict(values)
            kind = sizes.pop("kind")
            if kind not in ENCODERS:
                raise InputError(
                    f"unknown encoder.kind {kind!r} (known: {', '.join(ENCODERS)})"
                )
            if sizes.pop("word_vector_size") != word_vector_size:
                raise InputError(
                    "encoder.word_vector_size must be the size of the word vectors"
                )
            own = convert(sizes, ENCODERS[kind], where=where, name="encoder.{}".format)
            return cls(own, word_vector_size)


class DirectionEncoder(nn.Module):
    """One direction: an input layer and an encoder, which reads words in its own
    reading order.
    """

    def __init__(self, input_layer: nn.Module, encoder: Encoder) -> None:
        super().__init__()
        self.input_layer = input_layer
        self.encoder = encoder

    def forward(
        self, words: Tensor, state: EncoderState | None = None, **options: Any
    ) -> EncoderOutput:
        """One window.

        Args:
            words: [B, T, E], in reading order.
            state: see `Encoder.forward`.
            options: of `Encoder.forward`.
        """
        return self.encoder(self.input_layer(words), state, **options)


class BidirectionalEncoder(nn.Module):
    """The directions of a model, a `DirectionEncoder` each.

    Args:
        config: the encoder of each direction.
        directions: the names of the directions.
        fast: whether encoders run their fast implementation, which equals the reference
            up to rounding.
    """

    def __init__(
        self,
        config: EncoderConfig,
        *,
        directions: tuple[str, ...] = DIRECTIONS,
        fast: bool = False,
    ) -> None:
        super().__init__()
        self.config = config
        self.directions = directions
        for direction in directions:
            self.add_module(
                direction_name(direction),
                DirectionEncoder(
                    config.build_input_layer(), config.sizes.build(fast=fast)
                ),
            )
        # Whatever PyTorch's default type is.
        self.float()

    def direction(self, name: str) -> DirectionEncoder:
        """The encoder of one direction."""
        return getattr(self, direction_name(name))

    @property
    def width(self) -> int:
        """The width of the layer states: 2P, or P for a model of one direction."""
        return len(self.directions) * self.config.sizes.projection_size

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Layer states of whole sentences, each from zero state.

        Args:
            vectors: [B, T, E], sentences with their `<s>` and `</s>`, padded at the
                end.
            lengths: int [B], `<s>` and `</s>` counted.

        Returns:
            [B, L + 1, T, 2P] (forward ‖ backward), aligned with `vectors`; what stands
            past a length means nothing.
        """
        # padding stands at the end in both reading orders, so it never reaches a word
        states = []
        for direction in self.directions:
            backward = direction == "backward"
            read = reverse_padded(vectors, lengths) if backward else vectors
            # [B, T, L + 1, P]
            made = torch.stack(self.direction(direction)(read).layer_states, dim=2)
            states.append(reverse_padded(made, lengths) if backward else made)
        return torch.cat(states, dim=-1).transpose(1, 2)

    def weights(self) -> dict[str, Tensor]:
        """The weights by the names of model files and checkpoints, which do not change
        with the modules of the code.

        `forward_lm.input_layer.norm.weight` of the module is
        `forward_lm.input_norm.weight` of a file, and `forward_lm.encoder.layers.0.bias`
        is `forward_lm.layers.0.bias`.
        """
        return {_file_name(name): tensor for name, tensor in self.state_dict().items()}

    def fingerprint(self) -> str:
        """A content hash of the weights."""
        return fingerprint(
            name.encode() + tensor.numpy().tobytes()
            for name, tensor in sorted(contiguous(self.weights()).items())
        )

    def load_weights(
        self, weights: Mapping[str, Tensor], *, assign: bool = False
    ) -> None:
        """Take over weights by their names in files.

        Args:
            weights: all of them.
            assign: whether the tensors become the module's own, in place of a copy.

        Raises:
            InputError: a weight is missing, unknown, or of another shape or type.
        """
        check_weights(weights, self.weights())
        own = {name: weights[_file_name(name)] for name in self.state_dict()}
        self.load_state_dict(own, assign=assign)


def _file_name(name: str) -> str:
    return name.replace(".input_layer.", ".input_", 1).replace(".encoder.", ".", 1)


def direction_name(direction: str) -> str:
    """The module, and so the prefix of the parameters, of a direction; every module has
    a method `forward` already.
    """
    return f"{direction}_lm"


def reverse_padded(values: Tensor, lengths: Tensor) -> Tensor:
    """[B, T, …] with the first `lengths[b]` steps of every row reversed and the padding
    left where it is.
    """
    # [T], [B, 1], and of both the step [B, T] that each step takes its values from
    steps = torch.arange(values.shape[1], device=values.device)
    lengths = lengths.unsqueeze(1)
    source = torch.where(steps < lengths, lengths - 1 - steps, steps)
    return values[torch.arange(len(values), device=values.device).unsqueeze(1), source]
