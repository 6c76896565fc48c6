"""The baseline: the same encoder on the cell of `allennlp_light`, which steps through a batch as AllenNLP did."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from elmoc.encoders.bidirectional import BidirectionalEncoder, reverse_padded
from elmoc.encoders.lstm import LstmSizes, LstmStack, ProjectedLstmLayer
from elmoc.errors import InputError


def allennlp_states(encoder: BidirectionalEncoder) -> Callable[[Tensor, Tensor], Tensor]:
    """A function that computes what `encoder` does, with its weights and AllenNLP's cells.

    It takes word vectors [B, T, E] and lengths, and gives layer states [B, L + 1, T, 2P]. Raises `InputError` where the
    package is missing.
    """
    sizes = encoder.config.sizes
    assert isinstance(sizes, LstmSizes)
    cells = {name: [allennlp_cell(layer, sizes) for layer in _layers(encoder, name)] for name in encoder.directions}

    @torch.inference_mode()
    def states(vectors: Tensor, lengths: Tensor) -> Tensor:
        lengths, order = lengths.sort(descending=True)  # as the cell needs it
        sides = []
        for direction, stack in cells.items():
            backward = direction == "backward"
            read = reverse_padded(vectors[order], lengths) if backward else vectors[order]
            layers = [encoder.direction(direction).input_layer(read)]
            for index, cell in enumerate(stack):
                outputs, _ = cell(layers[-1], lengths.tolist())
                layers.append(outputs + layers[-1] if sizes.residual and index > 0 else outputs)
            sides.append(torch.stack([reverse_padded(each, lengths) if backward else each for each in layers], 1))
        joined = torch.cat(sides, -1)
        return torch.empty_like(joined).index_copy_(0, order, joined)

    return states


def _layers(encoder: BidirectionalEncoder, direction: str) -> list[ProjectedLstmLayer]:
    stack = encoder.direction(direction).encoder
    assert isinstance(stack, LstmStack)
    return [layer for layer in stack.layers if isinstance(layer, ProjectedLstmLayer)]


def allennlp_cell(layer: ProjectedLstmLayer, sizes: LstmSizes, *, dropout: float = 0.0) -> nn.Module:
    """AllenNLP's cell with the weights of a layer, which both then share.

    The clip of the projection and layer normalisation are put behind its projection, since the cell has no place for
    them between that and the `dropout` of its state. Raises `InputError` where the package is missing.
    """
    try:
        from allennlp_light.modules.lstm_cell_with_projection import LstmCellWithProjection
    except ImportError:
        raise InputError("allennlp-light is not installed: pip install allennlp-light") from None
    with torch.device("meta"):
        cell = LstmCellWithProjection(
            input_size=layer.input_weight.shape[1],
            hidden_size=sizes.projection_size,
            cell_size=sizes.cell_size,
            recurrent_dropout_probability=dropout,
            memory_cell_clip_value=sizes.cell_clip or None,
        )
    cell.input_linearity.weight = layer.input_weight
    cell.state_linearity.weight = layer.hidden_weight
    cell.state_linearity.bias = layer.bias
    cell.state_projection.weight = layer.projection_weight
    behind: list[nn.Module] = []
    if sizes.projection_clip:
        behind.append(nn.Hardtanh(-sizes.projection_clip, sizes.projection_clip))
    if layer.norm is not None:
        behind.append(layer.norm)
    cell.state_projection = nn.Sequential(cell.state_projection, *behind)
    return cell
