"""The benchmark of dumping: its baseline computes the same, and its figures are there."""

import re
import sys

import pytest
import torch

from elmoc.benchmark import dumping
from elmoc.benchmark.allennlp_cell import allennlp_states
from elmoc.encoders.bidirectional import EncoderConfig
from elmoc.encoders.lstm import LstmSizes


@pytest.mark.parametrize("layer_norm", [True, False])
def test_the_baseline_computes_the_same(layer_norm: bool) -> None:
    sizes = LstmSizes(projection_size=12, cell_size=20, layer_norm=layer_norm, projection_clip=0.05)
    encoder = dumping.random_encoder(EncoderConfig(sizes, 10))
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.mul_(10)
    vectors, lengths = dumping.padded([torch.randn(length, 10) for length in (3, 7, 1, 5)])
    with torch.inference_mode():
        expected = encoder(vectors, lengths)
    states = allennlp_states(encoder)(vectors, lengths)
    for ours, theirs, length in zip(states, expected, lengths.tolist(), strict=True):
        torch.testing.assert_close(ours[:, :length], theirs[:, :length], atol=1e-5, rtol=1e-5)


def test_every_figure_is_there() -> None:
    figures = dict(dumping.rows(quick=True))
    assert figures["sentences"].startswith("100 of ")
    assert re.fullmatch(
        r"[\d,]+ words/s, \d+% of the matrix rate \(\d+% by processor time\)", figures["batches, float32"]
    )
    assert "times" in figures["float32 over allennlp_light"]
    assert "of reading all weights" in figures["one sentence at a time, float32"]


def test_without_the_package_the_baseline_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "allennlp_light.modules.lstm_cell_with_projection", None)
    figures = dict(dumping.rows(quick=True))
    assert figures["allennlp_light"] == "not measured: allennlp-light is not installed: pip install allennlp-light"
    assert "float32 over allennlp_light" not in figures
