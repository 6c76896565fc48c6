"""The description of a run: its size, and what one update of it takes, without starting it."""

import pytest
import torch
from elmoc.corpus import Corpus
from pretrain.describe import measure
from tests.pretrain.conftest import TinyRuns
from tests.pretrain.data.reading import updates_of_epoch

P, C, E = 8, 12, 8


def test_describe_prints_sizes_and_leaves_nothing(
    runs: TinyRuns, tiny_corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.run("run", "--describe", train__updates=0, train__epochs=2, data__target_vectors="gaps")
    assert not (runs.folder / "run").exists()
    printed = capsys.readouterr().out
    products = 4 * C * P + 4 * C * P + P * C
    encoder = 2 * ((E * P + P) + 2 * P + 2 * (products + 4 * C + 2 * P))
    assert f"trainable parameters: {encoder + 2 * (P * E + E):,}" in printed
    assert f"  encoder: {encoder:,} parameters" in printed
    assert f"updates: {2 * updates_of_epoch(tiny_corpus, 4, 5):,} " in printed


def test_the_trial_leaves_the_weights_as_they_were(runs: TinyRuns) -> None:
    setup = runs.setup()
    parameters = [*setup.encoder.parameters(), *setup.output_layers.parameters()]
    before = [parameter.clone() for parameter in parameters]
    seconds, peak = measure(setup)
    assert min(seconds, peak) > 0
    assert all(torch.equal(one, other) for one, other in zip(before, parameters, strict=True))
