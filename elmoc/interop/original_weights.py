"""Weights of the original ELMo: every tensor of `weights.hdf5` beside ours, both ways.

Source: bilm-tf (`bilm/model.py`, `bilm/training.py`), AllenNLP (`allennlp/modules/elmo.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import direction_name
from elmoc.encoders.lstm import LstmSizes
from elmoc.interop.imported import Weight
from elmoc.word_vectors.character_network import CharacterCnnConfig


@dataclass(frozen=True)
class TwoWayWeight(Weight):
    """A tensor of `weights.hdf5`; `write` makes it of ours, of which one that is not there is None."""

    write: Callable[..., Tensor]


def weight_table(cnn: CharacterCnnConfig, lstm: LstmSizes) -> list[TwoWayWeight]:
    """Their tensors and ours, of models of these sizes.

    Ours are the names of `CharacterCnn` and of model directories. A kernel of theirs is the transpose of a weight of
    ours, their W_0 is W_x and W_h one above the other, and their gates are in the order i, g, f, o. They add 1 to the
    bias of the forget gate when they run. As that loses its last digits, the bias is kept as it was, too.
    """
    filters, cell, projection = cnn.filter_count, lstm.cell_size, lstm.projection_size
    weights = [_same("char_embed", (cnn.characters, cnn.character_size), "characters.weight")]
    for index, (width, number) in enumerate(cnn.filters):
        shape, name = (1, width, cnn.character_size, number), f"convolutions.{index}"
        weights.append(TwoWayWeight(f"CNN/W_cnn_{index}", shape, (f"{name}.weight",), _read_filters, _write_filters))
        weights.append(_same(f"CNN/b_cnn_{index}", (number,), f"{name}.bias"))
    for index in range(cnn.highways):
        for gate in ("transform", "carry"):
            name = f"highways.{index}.{gate}"
            weights.append(_transposed(f"CNN_high_{index}/W_{gate}", (filters, filters), f"{name}.weight"))
            weights.append(_same(f"CNN_high_{index}/b_{gate}", (filters,), f"{name}.bias"))
    if cnn.projection:
        weights.append(_transposed("CNN_proj/W_proj", (filters, projection), "projection.weight"))
        weights.append(_same("CNN_proj/b_proj", (projection,), "projection.bias"))
    for number, direction in enumerate(DIRECTIONS):
        for index in range(lstm.layers):
            theirs = f"RNN_{number}/RNN/MultiRNNCell/Cell{index}/LSTMCell"
            ours = f"{direction_name(direction)}.layers.{index}"
            products = (f"{ours}.input_weight", f"{ours}.hidden_weight")
            read = partial(_read_product, inputs=projection)
            weights.append(TwoWayWeight(f"{theirs}/W_0", (2 * projection, 4 * cell), products, read, _write_product))
            bias = (f"{ours}.bias", f"{ours}.forget_bias")
            weights.append(TwoWayWeight(f"{theirs}/B", (4 * cell,), bias, _read_bias, _write_bias))
            weights.append(_transposed(f"{theirs}/W_P_0", (cell, projection), f"{ours}.projection_weight"))
    return weights


def _same(theirs: str, shape: tuple[int, ...], ours: str) -> TwoWayWeight:
    return TwoWayWeight(theirs, shape, (ours,), lambda tensor: (tensor,), lambda tensor: tensor)


def _transposed(theirs: str, shape: tuple[int, ...], ours: str) -> TwoWayWeight:
    return TwoWayWeight(theirs, shape, (ours,), lambda tensor: (tensor.T,), lambda tensor: tensor.T)


def _read_filters(theirs: Tensor) -> tuple[Tensor]:
    return (theirs.squeeze(0).permute(2, 1, 0),)  # [1, width, D, filters] → [filters, D, width]


def _write_filters(ours: Tensor) -> Tensor:
    return ours.permute(2, 1, 0).unsqueeze(0)


def _exchanged_gates(values: Tensor) -> Tensor:
    """[…, 4C] with the gates in the order i, g, f, o → i, f, g, o, or the other way."""
    first, second, third, fourth = values.chunk(4, dim=-1)
    return torch.cat([first, third, second, fourth], dim=-1)


def _read_product(theirs: Tensor, *, inputs: int) -> tuple[Tensor, Tensor]:
    ours = _exchanged_gates(theirs)  # [2P, 4C]
    return ours[:inputs].T, ours[inputs:].T


def _write_product(input_weight: Tensor, hidden_weight: Tensor) -> Tensor:
    return _exchanged_gates(torch.cat([input_weight.T, hidden_weight.T]))


def _read_bias(theirs: Tensor) -> tuple[Tensor, Tensor]:
    i, g, f, o = theirs.chunk(4)
    return torch.cat([i, f + 1, g, o]), f


def _write_bias(bias: Tensor, forget_bias: Tensor | None) -> Tensor:
    i, f, g, o = bias.chunk(4)
    theirs = f - 1
    if forget_bias is not None and forget_bias.shape == f.shape:
        theirs = torch.where(forget_bias + 1 == f, forget_bias, theirs)  # what training has not changed since
    return torch.cat([i, g, theirs, o])
