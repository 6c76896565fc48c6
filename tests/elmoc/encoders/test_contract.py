"""The contract of encoders: what each kind of `ENCODERS`, and the example of docs/extending.md, promises."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from elmoc.encoders.bidirectional import ENCODERS, BidirectionalEncoder, EncoderConfig
from elmoc.encoders.inference import InferenceEncoder
from elmoc.model_directory import read_model_directory, write_model_directory
from elmoc.word_vectors.sources import RandomVectors
from tests.pages import example
from tests.tiny import tiny_model
from torch import Tensor

from elmoc.encoders import Encoder, EncoderOutput, EncoderSizes

EXAMPLE = example("docs/extending.md", "GruSizes")["GruSizes"]
KINDS = ENCODERS | {EXAMPLE.kind: EXAMPLE}
# What makes a kind small, where its defaults do not.
SMALL: dict[str, dict[str, Any]] = {"lstm": {"cell_size": 7}, "transformer": {"heads": 2, "feedforward_size": 6}}
P = 8
LENGTHS = [6, 1, 4, 3]


def sizes_of(kind: str, dropout: float = 0.0) -> EncoderSizes:
    return KINDS[kind](projection_size=P, layers=2, dropout=dropout, **SMALL.get(kind, {}))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(ENCODERS, EXAMPLE.kind, EXAMPLE)
    return request.param


@pytest.fixture(params=[False, True], ids=["reference", "fast"])
def fast(request: pytest.FixtureRequest) -> bool:
    return request.param


def encoder_of(kind: str, *, fast: bool, dropout: float = 0.0) -> Encoder:
    """With random norms and biases, too; in training where it has dropout."""
    torch.manual_seed(0)
    encoder = sizes_of(kind, dropout).build(fast=fast)
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return encoder.train(dropout > 0)


def padded_batch() -> Tensor:
    """[B, T, P] with large numbers for padding."""
    inputs = torch.randn(len(LENGTHS), max(LENGTHS), P, generator=torch.Generator().manual_seed(1))
    for row, length in enumerate(LENGTHS):
        inputs[row, length:] = 100.0
    return inputs


def tensors_of(output: EncoderOutput) -> list[Tensor]:
    """The tensors of the state, lowest layer first."""
    return [tensor for layer in output.state.layers for tensor in layer]


def assert_equal(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> None:
    torch.testing.assert_close(ours, theirs, atol=3e-5, rtol=1e-5)


def test_there_is_a_state_for_each_layer_and_the_lowest_is_what_was_read(kind: str, fast: bool) -> None:
    inputs = padded_batch()
    output = encoder_of(kind, fast=fast)(inputs)
    assert torch.equal(output.layer_states[0], inputs)
    assert [each.shape for each in output.layer_states] == [inputs.shape] * 3
    assert len(output.state.layers) == 2
    assert {len(each) for each in tensors_of(output)} <= {len(inputs)}, "a row of a state is a stream"


def test_padded_batches_are_single_sentences(kind: str, fast: bool) -> None:
    encoder = encoder_of(kind, fast=fast)
    inputs = padded_batch()
    together = encoder(inputs)
    for row, length in enumerate(LENGTHS):
        alone = encoder(inputs[row : row + 1, :length])
        assert_equal([each[row, :length] for each in together.layer_states], [each[0] for each in alone.layer_states])


def test_carried_state_is_one_long_sentence(kind: str, fast: bool) -> None:
    encoder = encoder_of(kind, fast=fast)
    inputs = torch.randn(3, 7, P)
    whole = encoder(inputs)
    first = encoder(inputs[:, :3])
    if kind == "transformer":
        assert tensors_of(first) == []
        return
    second = encoder(inputs[:, 3:], first.state)
    pairs = zip(first.layer_states, second.layer_states, strict=True)
    assert_equal([torch.cat(pair, dim=1) for pair in pairs], whole.layer_states)
    assert_equal(tensors_of(second), tensors_of(whole))
    cold = encoder(inputs[:, 3:])
    assert not torch.allclose(cold.layer_states[-1], second.layer_states[-1])


def test_gradients_in_a_batch_are_those_of_sentences_alone(kind: str, fast: bool) -> None:
    encoder = encoder_of(kind, fast=fast, dropout=0.3)
    inputs = padded_batch()
    inputs.requires_grad_()
    masks = encoder.draw_dropout_masks(*inputs.shape[:2], torch.Generator().manual_seed(2))
    leaves = [inputs, *encoder.parameters()]
    output = encoder(inputs, dropout_masks=masks)
    loss = sum(each[row, :length].square().sum() for each in output.layer_states for row, length in enumerate(LENGTHS))
    together = torch.autograd.grad(loss, leaves)
    alone = [torch.zeros_like(each) for each in leaves]
    for row, length in enumerate(LENGTHS):
        own = [mask[row : row + 1, : length if mask.ndim == 3 else None] for mask in masks]
        output = encoder(inputs[row : row + 1, :length], dropout_masks=own)
        loss = sum(each.square().sum() for each in output.layer_states)
        for total, gradient in zip(alone, torch.autograd.grad(loss, leaves), strict=True):
            total += gradient
    torch.testing.assert_close(together, alone, atol=2e-4, rtol=2e-4)


def test_dropout_masks_are_honoured(kind: str, fast: bool) -> None:
    encoder = encoder_of(kind, fast=fast, dropout=0.5)
    inputs = padded_batch()

    def top(masks: Sequence[Tensor | None] | None) -> Tensor:
        return encoder(inputs, dropout_masks=masks).layer_states[-1]

    masks = encoder.draw_dropout_masks(*inputs.shape[:2], torch.Generator().manual_seed(2))
    assert {value for mask in masks for value in mask.unique().tolist()} == {0.0, 2.0}
    assert torch.equal(top(masks), top(masks))
    assert not torch.equal(top(None), top(None)), "in training masks are drawn"
    ones = [torch.ones_like(mask) for mask in masks]
    whole = top(ones)
    for index in range(len(masks)):
        changed = [mask.clone() for mask in ones]
        changed[index][1] = 0.0
        other = top(changed)
        assert not torch.allclose(other[1], whole[1])
        assert_equal([other[0], other[2]], [whole[0], whole[2]])
    encoder.eval()
    assert_equal([top(None)], [whole])


@pytest.mark.parametrize("input_layer", ["projection", "identity"])
def test_a_saved_and_loaded_copy_is_equal(kind: str, fast: bool, input_layer: str, tmp_path: Path) -> None:
    config = EncoderConfig(replace(sizes_of(kind), input_layer=input_layer), P)
    encoder = BidirectionalEncoder(config, fast=fast).eval()
    model = tiny_model(vectors=RandomVectors(seed=3, size=P))
    write_model_directory(tmp_path / "model", replace(model, encoder=encoder))
    copy = read_model_directory(tmp_path / "model", fast=fast).encoder
    assert copy.config == encoder.config
    assert copy.fingerprint() == encoder.fingerprint()
    vectors, lengths = torch.randn(4, 6, P), torch.tensor(LENGTHS)
    assert torch.equal(copy(vectors, lengths), encoder(vectors, lengths))


@pytest.mark.usefixtures("registers")
def test_inference_gives_the_states_of_training(kind: str, fast: bool) -> None:
    encoder = BidirectionalEncoder(EncoderConfig(sizes_of(kind), 5), fast=fast).eval()
    vectors = torch.randn(sum(LENGTHS), 5)
    inference = InferenceEncoder(encoder)
    found = inference.sentences(inference.read_words(vectors), torch.tensor(LENGTHS))
    for ours, words in zip(found, vectors.split(LENGTHS), strict=True):
        [expected] = encoder(words.unsqueeze(0), torch.tensor([len(words)]))
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)
