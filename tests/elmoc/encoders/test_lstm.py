"""The LSTM encoder: it is the paper's, and its states depend on what they should depend on, and on nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from elmoc.encoders.bidirectional import BidirectionalEncoder, DirectionEncoder, EncoderConfig
from elmoc.encoders.lstm import LstmSizes, LstmStack
from tests.references import encode_one
from torch import Tensor, nn

from elmoc.encoders import DIRECTIONS

SMALL = EncoderConfig(LstmSizes(projection_size=5, cell_size=7, layers=3, dropout=0.0), word_vector_size=6)


def file_names(encoder: DirectionEncoder) -> dict[str, Tensor]:
    """The weights of one direction by their names in files."""
    whole = BidirectionalEncoder(SMALL, directions=("forward",))
    whole.forward_lm = encoder
    return {name.removeprefix("forward_lm."): value for name, value in whole.weights().items()}


def test_forget_bias_is_one_and_gates_are_orthogonal() -> None:
    layer = LstmStack(SMALL.sizes).layers[0]
    assert layer.bias.reshape(4, 7).tolist() == [[0.0] * 7, [1.0] * 7, [0.0] * 7, [0.0] * 7]
    for weight in (layer.input_weight, layer.hidden_weight):
        for gate in weight.chunk(4):  # [C, P], C > P: orthonormal columns
            torch.testing.assert_close(gate.T @ gate, torch.eye(5), atol=1e-5, rtol=0)


def test_paper_size_has_the_papers_number_of_parameters() -> None:
    with torch.device("meta"):
        encoder = BidirectionalEncoder(EncoderConfig())
        outputs = {direction: nn.Linear(512, 300) for direction in DIRECTIONS}
    for direction in DIRECTIONS:
        parameters = [*encoder.direction(direction).parameters(), *outputs[direction].parameters()]
        assert sum(parameter.numel() for parameter in parameters if parameter.requires_grad) == 38_092_588
    assert sum(p.numel() for module in (encoder, *outputs.values()) for p in module.parameters()) == 76_185_176


@pytest.mark.parametrize("clips", [(3.0, 3.0), (0.5, 0.4)], ids=["the paper's clips", "clips that bite"])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_one_sentence_against_the_equations(clips: tuple[float, float], dropout: float) -> None:
    torch.manual_seed(1)
    sizes = replace(SMALL.sizes, cell_clip=clips[0], projection_clip=clips[1], dropout=dropout)
    encoder = DirectionEncoder(SMALL.build_input_layer(), LstmStack(sizes)).train()
    with torch.no_grad():
        for parameter in encoder.parameters():  # norms and biases, too
            parameter.add_(0.5 * torch.randn_like(parameter))
    encoder.double()
    vectors = torch.randn(1, 4, 6, dtype=torch.float64)
    drawn = encoder.encoder.draw_dropout_masks(1, 4, torch.Generator().manual_seed(2))
    states = encoder(vectors, dropout_masks=drawn).layer_states

    drawn = torch.Generator().manual_seed(2)
    masks = [torch.bernoulli(torch.full((1, 5), 1 - dropout), generator=drawn)[0].double().numpy() for _ in range(3)]
    expected = encode_one(
        vectors[0].numpy(),
        {name: value.numpy() for name, value in file_names(encoder).items()},
        layers=3,
        cell_clip=clips[0],
        projection_clip=clips[1],
        masks=[mask / (1 - dropout) for mask in masks] if dropout else None,
    )
    np.testing.assert_allclose(torch.cat(states).detach().numpy(), expected, atol=1e-12)
