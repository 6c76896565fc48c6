"""The parameters of whole models at the paper's sizes, beside those of its Table 4."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from pretrain.config import load_config
from pretrain.output_layers.full_softmax import FullSoftmaxOutput, FullSoftmaxSettings

from pretrain import CONFIGS


@pytest.mark.parametrize(
    ("name", "inputs", "targets", "found"),
    [
        ("elmo", 300, 300, 500.7),  # the paper: 499, of a softmax of 483 by its own count, and what reads characters
        ("elmo_c", 300, 300, 76.185176),
        ("elmo_a", 300, 300, 196.4),
        ("elmo_c_oneb", 300, 300, 76.185176),
        ("elmo_c_rnd", 300, 300, 76.185176),
        ("elmo_c_cnn", 512, 512, 76.6),
        ("elmo_c_cnn_cc", 512, 300, 76.4),
        ("elmo_c_cc_cnn", 300, 512, 76.4),
    ],
)
def test_configs(name: str, inputs: int, targets: int, found: float) -> None:
    """With One Billion Word's types; vectors of the character CNN have 512 numbers, fastText's 300."""
    config = load_config(CONFIGS / f"{name}.toml")
    corpus: Any = SimpleNamespace(types=793_471, counts=np.ones(793_471, dtype=np.int64))
    table: Any = SimpleNamespace(size=targets)
    size = config.encoder.projection_size
    with torch.device("meta"):
        network = config.input_layer.build(size, corpus)
        encoder = BidirectionalEncoder(EncoderConfig(config.encoder, inputs if network is None else size))
        copies = 1 if config.output_layer.shared else 2
        layers = [config.output_layer.build(projection_size=size, corpus=corpus, targets=table) for _ in range(copies)]
    modules = [encoder, *layers, *([] if network is None else [network])]
    total = sum(weight.numel() for module in modules for weight in module.parameters())
    assert total / 1e6 == pytest.approx(found, abs=0.05)


def test_subwords() -> None:
    """With 32,000 units; the paper says that there are about 30,000."""
    config = load_config(CONFIGS / "elmo_sub.toml")
    with torch.device("meta"):
        encoder = BidirectionalEncoder(EncoderConfig(config.encoder, config.encoder.projection_size))
        output = FullSoftmaxOutput(512, 32_000, FullSoftmaxSettings())
    found = sum(weight.numel() for module in (encoder, output) for weight in module.parameters())
    assert found / 1e6 == pytest.approx(92, abs=0.1)
