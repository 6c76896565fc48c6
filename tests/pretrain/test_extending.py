"""The examples of docs/extending.md train: its encoder and its output layer, chosen in a config like the others."""

from pathlib import Path

import pytest
from elmoc.encoders.bidirectional import ENCODERS
from pretrain.config import KINDS
from pretrain.run.directory import read_metrics
from tests.pages import example
from tests.pretrain.conftest import TinyRuns, assert_resumes_exactly

PAGE = "docs/extending.md"


def test_an_encoder_is_trained(runs: TinyRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENCODERS, "gru", example(PAGE, "GruSizes")["GruSizes"])
    settings = {"encoder__kind": "gru", "encoder__cell_size": None, "log__checkpoint_updates": 6}
    runs.run("run", **settings)
    assert_resumes_exactly(runs, "run", 6, **settings)


def test_an_output_layer_is_trained(runs: TinyRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS["output_layer"], "l1", example(PAGE, "L1Settings")["L1Settings"])
    run = runs.run("run", output_layer__kind="l1", train__updates=24)
    losses = [line["loss"] for line in read_metrics(run.path, "train")]
    assert losses[-1] < 0.9 * losses[0]
    assert "reciprocal_rank" in read_metrics(run.path, "evaluation")[-1]
    assert Path(run.path, "model/heads.safetensors").exists()
