"""Inference: the layer states are the plain recurrence's, whatever is read together."""

from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.encoders.inference import InferenceEncoder
from elmoc.encoders.lstm import LstmSizes
from elmoc.encoders.lstm_inference import LstmInference, in_8_bits, inference_kernels
from elmoc.errors import InputError
from elmoc.settings import Precision
from elmoc.weights import packed_weights, unpacked_weights
from torch import Tensor
from torch.nn import functional as F

from elmoc.encoders import DIRECTIONS

WIDTH = 20
CASES: dict[str, dict[str, Any]] = {
    "paper": {},
    "widths of whole panels": {"projection_size": 64, "cell_size": 96},
    "one cell": {"projection_size": 1, "cell_size": 1, "layer_norm": False},
    "clips that bite": {"cell_clip": 0.4, "projection_clip": 0.3},
    "no clips": {"cell_clip": 0.0, "projection_clip": 0.0},
    "no norm": {"layer_norm": False},
    "no residual": {"residual": False},
    "one layer": {"layers": 1},
    "three layers": {"layers": 3},
    "one direction": {"directions": ("backward",)},
    "identity": {"input_layer": "identity", "projection_size": WIDTH},
}
LENGTHS = [5, 0, 9, 1, 9, 2, 12, 3]


def encoders(
    *, directions: tuple[str, ...] = DIRECTIONS, **sizes: Any
) -> tuple[BidirectionalEncoder, BidirectionalEncoder]:
    """A fast encoder and the plain one with its weights, which are large enough that every part of a step counts."""
    torch.manual_seed(0)
    config = EncoderConfig(LstmSizes(**{"projection_size": 18, "cell_size": 37} | sizes), WIDTH)
    fast = BidirectionalEncoder(config, directions=directions, fast=True)
    with torch.no_grad():
        for weight in fast.parameters():
            weight.copy_(0.4 * torch.randn(weight.shape))
    plain = BidirectionalEncoder(config, directions=directions).eval()
    plain.load_weights(fast.weights())
    return fast, plain


def batch(lengths: list[int]) -> tuple[Tensor, Tensor]:
    """Random vectors [B, T, E], and the lengths."""
    generator = torch.Generator().manual_seed(len(lengths))
    return torch.randn(len(lengths), max(lengths), WIDTH, generator=generator), torch.tensor(lengths)


def with_rows(most: int, inference: InferenceEncoder) -> InferenceEncoder:
    """It reads so many rows at once, several sentences in each."""
    for prepared in inference._prepared.values():
        vars(prepared)["most_rows"] = most
    return inference


def packed(vectors: Tensor, lengths: Tensor) -> Tensor:
    """[M, E] without the padding of [B, T, E]."""
    return torch.cat([row[:length] for row, length in zip(vectors, lengths.tolist(), strict=True)])


def states_of(inference: InferenceEncoder, vectors: Tensor, lengths: Tensor) -> Tensor:
    """Layer states [B, L + 1, T, 2P] of [B, T, E], zeros where there is padding."""
    states = vectors.new_zeros(
        len(lengths), inference.encoder.config.sizes.layers + 1, vectors.shape[1], inference.encoder.width
    )
    words = inference.read_words(packed(vectors, lengths))
    for row, own in zip(states, inference.sentences(words, lengths), strict=True):
        row[:, : own.shape[1]] = own
    return states


def largest_difference(states: Tensor, expected: Tensor, lengths: Tensor) -> float:
    """Of layer states [B, L + 1, T, 2P], over all words."""
    return max(
        float((ours[:, :length] - theirs[:, :length]).abs().max())
        for ours, theirs, length in zip(states, expected, lengths.tolist(), strict=True)
        if length
    )


def test_where_there_are_kernels_they_run() -> None:
    fast, plain = encoders()
    prepared = fast.direction("forward").encoder.prepare("float32")
    assert isinstance(prepared, LstmInference) == (inference_kernels(torch.float32) is not None)
    assert plain.direction("forward").encoder.prepare("float32") is None
    assert fast.double().direction("forward").encoder.prepare("float32") is None


@pytest.mark.usefixtures("registers")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("fast", [True, False])
def test_many_sentences_at_once_are_the_plain_ones(case: str, fast: bool) -> None:
    encoder, plain = encoders(**CASES[case])
    lengths = torch.randint(1, 15, (300,), generator=torch.Generator().manual_seed(1))
    vectors = torch.randn(int(lengths.sum()), WIDTH)
    inference = with_rows(37, InferenceEncoder(encoder if fast else plain))
    states = inference.sentences(inference.read_words(vectors), lengths)
    padded = torch.nn.utils.rnn.pad_sequence(list(vectors.split(lengths.tolist())), batch_first=True)
    with torch.inference_mode():
        expected = plain(padded, lengths)
    for ours, theirs, length in zip(states, expected, lengths.tolist(), strict=True):
        torch.testing.assert_close(ours, theirs[:, :length], atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("registers")
@pytest.mark.parametrize("lengths", [[600], [60] * 7, [60] * 40], ids=str)
def test_long_sentences_are_the_plain_ones(lengths: list[int]) -> None:
    """One has more words than the kernels make input products of at once."""
    fast, plain = encoders()
    vectors, bounds = batch(lengths)
    with torch.inference_mode():
        expected = plain(vectors, bounds)
    torch.testing.assert_close(states_of(InferenceEncoder(fast), vectors, bounds), expected, atol=2e-5, rtol=1e-5)


@pytest.mark.usefixtures("registers")
@pytest.mark.parametrize("precision", ["float32", "bf16", "int8"])
@pytest.mark.parametrize("case", ["widths of whole panels", "identity"])
def test_a_sentence_gets_the_same_states_alone_and_in_any_batch(precision: Precision, case: str) -> None:
    inference = InferenceEncoder(encoders(**CASES[case])[0], precision=precision)
    vectors, lengths = batch(LENGTHS * 6)
    together = states_of(inference, vectors, lengths)
    shuffled = torch.randperm(len(lengths))
    again = states_of(inference, vectors[shuffled], lengths[shuffled])
    assert largest_difference(again, together[shuffled], lengths[shuffled]) == 0
    for row, length in enumerate(LENGTHS):
        if length:
            alone = states_of(inference, vectors[row : row + 1, :length], lengths[row : row + 1])
            assert largest_difference(alone, together[row : row + 1, :, :length], lengths[row : row + 1]) == 0


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_without_kernels_it_is_the_encoder_itself(precision: Precision) -> None:
    fast, _ = encoders()
    vectors, lengths = batch(LENGTHS)
    with patch("elmoc.encoders.lstm.inference_kernels", lambda dtype: None):
        inference = InferenceEncoder(fast, precision=precision)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        longest_first = lengths.argsort(descending=True, stable=True)
        expected = fast.eval()(vectors[longest_first], lengths[longest_first])
    read = inference.sentences(inference.read_words(packed(vectors, lengths)), lengths)
    for index, theirs in zip(longest_first.tolist(), expected.float(), strict=True):
        assert torch.equal(read[index], theirs[:, : LENGTHS[index]])


@pytest.mark.usefixtures("registers")
@pytest.mark.parametrize("case", CASES)
def test_in_bf16_it_is_no_further_from_float32_than_the_plain_one_under_autocast(case: str) -> None:
    fast, plain = encoders(**CASES[case])
    vectors, lengths = batch([12] * 33)
    exact = states_of(InferenceEncoder(plain), vectors, lengths)
    autocast = states_of(InferenceEncoder(plain, precision="bf16"), vectors, lengths)
    states = states_of(InferenceEncoder(fast, precision="bf16"), vectors, lengths)
    error, allowed = ((each - exact).norm() / exact.norm() for each in (states, autocast))
    assert 1e-4 < error < max(1.5 * allowed, 0.004)


def int8_linear(rows: Tensor, weight: Tensor, bias: Tensor | float = 0.0) -> Tensor:
    """The product of rows in 8 bits with a weight in 8 bits."""
    (integers, scale), (weights, scales) = in_8_bits(rows), in_8_bits(weight)
    return F.linear(integers, weights) * scale * scales.squeeze(1) + bias


@pytest.mark.parametrize("highest", ["amx", "avx512", "avx2"])
@pytest.mark.parametrize("case", CASES)
def test_in_int8_kernels_compute_what_plain_pytorch_does(
    case: str, highest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same integers, but for a number so near the middle of two that its last bit decides."""
    monkeypatch.setattr("elmoc.encoders.lstm.inference_kernels", partial(inference_kernels, highest=highest))
    fast, plain = encoders(**CASES[case])
    vectors, lengths = batch(LENGTHS * 6)
    states = states_of(with_rows(13, InferenceEncoder(fast, precision="int8")), vectors, lengths)
    exact = states_of(InferenceEncoder(plain), vectors, lengths)
    monkeypatch.setattr("elmoc.encoders.recurrence.F", SimpleNamespace(**vars(F) | {"linear": int8_linear}))
    expected = states_of(InferenceEncoder(plain), vectors, lengths)
    assert ((states - expected).abs() > 1e-4).float().mean() < 0.05
    assert (states - expected).norm() / expected.norm() < 0.005
    assert 0 < (states - exact).norm() / exact.norm() < 0.03


def test_weights_that_were_stored_in_int8_become_the_stored_integers() -> None:
    stored = packed_weights({"weight": torch.randn(300, 70) * torch.arange(300).unsqueeze(1)}, "int8")
    integers, _ = in_8_bits(unpacked_weights(stored)[0]["weight"])
    assert torch.equal(integers.to(torch.int8), stored["weight"])


def test_others_refuse_int8() -> None:
    _, plain = encoders()
    with pytest.raises(InputError, match="precision int8 needs an encoder of kind lstm on a CPU with AVX2"):
        InferenceEncoder(plain, precision="int8")


@pytest.mark.parametrize("threads", [1, 3])
def test_any_number_of_threads_gives_the_same(threads: int) -> None:
    inference = InferenceEncoder(encoders()[0])
    vectors, lengths = batch(LENGTHS * 6)
    expected = states_of(inference, vectors, lengths)
    torch.set_num_threads(threads)
    assert largest_difference(states_of(inference, vectors, lengths), expected, lengths) < 1e-5


def test_without_sentences_or_words_nothing_is_computed() -> None:
    inference = InferenceEncoder(encoders()[0])
    words = inference.read_words(torch.zeros(0, WIDTH))
    assert inference.sentences(words, torch.zeros(0, dtype=torch.long)) == []
    nothing = inference.sentences(words, torch.zeros(2, dtype=torch.long))
    assert [states.shape for states in nothing] == [(3, 0, 36)] * 2


@pytest.mark.usefixtures("registers")
def test_a_number_that_is_not_finite_is_seen() -> None:
    for precision in ("float32", "bf16", "int8"):
        inference = InferenceEncoder(encoders(input_layer="identity", projection_size=WIDTH)[0], precision=precision)
        vectors, lengths = batch([3, 5])
        vectors[1, 2, 4] = float("nan")
        states = states_of(inference, vectors, lengths)
        assert states[0, :, :3].isfinite().all()
        assert states[1, 1:, 2].isnan().all()
        assert states[1, 1:, 4, :WIDTH].isnan().all()
