"""The Transformer encoder: the equations word by word, and what a word may see."""

import math
from collections.abc import Sequence

import pytest
import torch
from elmoc.encoders.transformer import Transformer, TransformerLayer, TransformerSizes, attention
from tests.references import assert_of_equations
from torch import Tensor
from torch.nn import functional as F

SIZES = TransformerSizes(projection_size=8, layers=2, heads=2, feedforward_size=6, dropout=0.4)


def stack_of(sizes: TransformerSizes = SIZES) -> Transformer:
    torch.manual_seed(1)
    stack = Transformer(sizes).double()
    with torch.no_grad():
        for weight in stack.parameters():  # norms and biases, too
            weight.add_(0.3 * torch.randn_like(weight))
    return stack


def plain_norm(norm: torch.nn.LayerNorm, x: Tensor) -> Tensor:
    return (x - x.mean()) / (x.var(unbiased=False) + norm.eps).sqrt() * norm.weight + norm.bias


def plain_layer(layer: TransformerLayer, x: Sequence[Tensor], masks: tuple[Tensor, Tensor]) -> list[Tensor]:
    """One sentence, a word and a head at a time."""
    size, heads = len(x[0]), layer.heads
    width = size // heads
    projected = [
        layer.queries_keys_values.weight @ plain_norm(layer.attention_norm, word) + layer.queries_keys_values.bias
        for word in x
    ]
    outputs = []
    for place, word in enumerate(x):
        parts = []
        for head in range(heads):
            columns = slice(head * width, (head + 1) * width)
            query = projected[place][:size][columns]
            keys = [each[size : 2 * size][columns] for each in projected[: place + 1]]
            values = [each[2 * size :][columns] for each in projected[: place + 1]]
            shares = torch.stack([query @ key / math.sqrt(width) for key in keys]).softmax(dim=0)
            parts.append(sum(share * value for share, value in zip(shares, values, strict=True)))
        attended = layer.attention_output.weight @ torch.cat(parts) + layer.attention_output.bias
        word = word + attended * masks[0]
        hidden = layer.feedforward.weight @ plain_norm(layer.feedforward_norm, word) + layer.feedforward.bias
        hidden = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2
        outputs.append(word + (layer.feedforward_output.weight @ hidden + layer.feedforward_output.bias) * masks[1])
    return outputs


def plain_states(stack: Transformer, x: Tensor, masks: Sequence[Tensor]) -> list[Tensor]:
    """The L + 1 layer states of one sentence [T, P]."""
    size = x.shape[1]
    words = []
    for time, word in enumerate(x):
        angles = [time / 10_000 ** (2 * (column // 2) / size) for column in range(size)]
        position = [math.cos(angle) if column % 2 else math.sin(angle) for column, angle in enumerate(angles)]
        words.append(word + torch.tensor(position, dtype=x.dtype))
    states = [x]
    for index, layer in enumerate(stack.layers):
        words = plain_layer(layer, words, (masks[2 * index], masks[2 * index + 1]))
        states.append(torch.stack(words))
    states[-1] = torch.stack([plain_norm(stack.norm, word) for word in words])
    return states


def test_states_and_gradients_are_those_of_the_equations() -> None:
    assert_of_equations(stack_of(), plain_states, states=1e-6, gradients=1e-5)  # sinusoids are float32


def test_training_in_bf16_has_attention_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    types: list[torch.dtype] = []
    plain = F.scaled_dot_product_attention

    def watched(*heads: Tensor, **options: bool) -> Tensor:
        types.append(heads[0].dtype)
        return plain(*heads, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", watched)
    stack = stack_of().float().eval()
    x = torch.randn(3, 6, 8, requires_grad=True)
    gradients = []
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            top = stack(x).layer_states[-1]
        gradients.append(torch.autograd.grad((top.float() ** 3).sum(), [x, *stack.parameters()]))
    assert types == [torch.float32] * 4
    for exact, rounded in zip(*gradients, strict=True):
        assert (rounded - exact).norm() <= 0.05 * exact.norm() + 1e-3
    heads = [torch.randn(3, 2, 6, 4, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    found = attention(*heads)
    assert torch.equal(found, plain(*(each.float() for each in heads), is_causal=True).bfloat16())
    attention(*(each.detach() for each in heads))
    assert types[4:] == [torch.float32, torch.bfloat16], "without gradients bf16 is as good"


@pytest.mark.parametrize(
    ("sizes", "weights"),
    [
        (TransformerSizes(), 6 * 3_152_384 + 1024),
        (TransformerSizes(layers=12, projection_size=768, heads=12, feedforward_size=3072), 85_054_464 + 1536),
    ],
    ids=["Peters et al. 2018b", "GPT"],
)
def test_published_sizes(sizes: TransformerSizes, weights: int) -> None:
    with torch.device("meta"):
        stack = sizes.build(fast=True)
    assert sum(weight.numel() for weight in stack.parameters()) == weights
