"""The parameters of whole models at the paper's sizes, beside those of its Table 4."""

from pathlib import Path

import pytest
import torch

import pretrain
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from pretrain.config import load_config
from pretrain.output_layers import OutputLayer
from pretrain.output_layers.adaptive import AdaptiveOutput, AdaptiveSettings
from pretrain.output_layers.continuous import ContinuousOutput, ContinuousSettings
from pretrain.output_layers.full_softmax import FullSoftmaxOutput, FullSoftmaxSettings
from pretrain.output_layers.sampled import FixedOutput, FixedSettings, SampledOutput, SampledSettings
from pretrain.speed.paper_rows import VOCABULARIES, output_layers

CONFIGS = Path(pretrain.__file__).parent / "configs"


def millions(*layers: OutputLayer) -> float:
    with torch.device("meta"):
        encoder = BidirectionalEncoder(EncoderConfig())
    return sum(weight.numel() for module in (encoder, *layers) for weight in module.parameters()) / 1e6


def test_two_layers_of_vectors() -> None:
    with torch.device("meta"):
        for layer, settings in ((ContinuousOutput, ContinuousSettings()), (FixedOutput, FixedSettings())):
            assert millions(*(layer(512, 300, settings) for _ in range(2))) == 76.185176  # the paper's 76


@pytest.mark.parametrize(("types", "paper"), [(40_000, 96), (793_471, 483), (2_000_000, 1102)])
def test_sampled_softmax(types: int, paper: int) -> None:
    with torch.device("meta"):
        found = millions(SampledOutput(512, types, types, SampledSettings()))
    assert found == pytest.approx(paper, abs=0.5)


def test_subwords() -> None:
    """With 32,000 units; the paper says that there are about 30,000."""
    config = load_config(CONFIGS / "elmo_sub.toml")
    with torch.device("meta"):
        encoder = BidirectionalEncoder(EncoderConfig(config.encoder, config.encoder.projection_size))
        output = FullSoftmaxOutput(512, 32_000, 32_000, FullSoftmaxSettings(tied=True))
    found = sum(weight.numel() for module in (encoder, output) for weight in module.parameters())
    assert found / 1e6 == pytest.approx(92, abs=0.1)


def test_adaptive_softmax() -> None:
    """The paper does not say its cut-offs: those of our rows come near its sizes."""
    rows = [row for row in output_layers("paper") if row.name == "ADAPTIVE"]
    assert [row.vocabulary for row in rows] == ["40K", "800K", "2000K"]
    assert rows[1].settings == rows[2].settings == load_config(CONFIGS / "elmo_a.toml").output_layer
    for row in rows:
        types = VOCABULARIES[row.vocabulary]
        assert isinstance(row.settings, AdaptiveSettings)
        with torch.device("meta"):
            found = millions(AdaptiveOutput(512, types, types, row.settings))
        assert row.paper is not None
        assert found == pytest.approx(row.paper[0], abs=0.5), row.vocabulary
