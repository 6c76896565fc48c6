"""The description of a run: its size and speed, without starting it."""

import re

import pytest
import torch

from elmoc.corpus import Corpus
from pretrain.config import load_config
from pretrain.data.windows import windows_per_epoch
from pretrain.describe import human_duration, measure
from pretrain.setup import set_up
from tests.pretrain.conftest import TinyRuns

P, C, E = 8, 12, 8


def test_describe_prints_sizes_and_leaves_nothing(
    runs: TinyRuns, tiny_corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"train__updates": 0, "train__epochs": 2, "data__target_vectors": "gaps"}
    runs.run("run", "--describe", **settings)
    assert not (runs.folder / "run").exists()
    printed = capsys.readouterr().out
    layer = 4 * C * P + 4 * C * P + 4 * C + P * C + 2 * P
    direction = (E * P + P) + 2 * P + 2 * layer + (P * E + E)
    assert f"trainable parameters: {2 * direction:,} ({direction:,} a direction)" in printed
    per_epoch = windows_per_epoch(tiny_corpus, 4, 5)
    assert f"updates: {2 * per_epoch:,} of 4 streams × 5 words ({per_epoch:,} an epoch)" in printed
    assert f"{tiny_corpus.types:,} types, {tiny_corpus.train_tokens:,} training tokens" in printed
    assert "2 types without a target vector" in printed
    assert re.search(r"speed on cpu in fp32: about [\d,]+ words/s, so \d+ (seconds|minutes) in all", printed)


def test_describe_looks_at_an_existing_run_without_touching_it(
    runs: TinyRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs.run("run")
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    runs.run("run", "--describe")
    runs.run("run", "--describe", "--resume")
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
    assert capsys.readouterr().out.count("trainable parameters") == 2


def test_the_trial_leaves_the_weights_as_they_were(runs: TinyRuns) -> None:
    overrides = [argument.removeprefix("--set=") for argument in runs.arguments("run")[2:]]
    setup = set_up(load_config(runs.config, overrides))
    parameters = [*setup.encoder.parameters(), *setup.output_layers.parameters()]
    before = [parameter.clone() for parameter in parameters]
    assert measure(setup) > 0
    assert all(torch.equal(one, other) for one, other in zip(before, parameters, strict=True))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(7, "7 seconds"), (600, "10 minutes"), (9000, "2.5 hours"), (10 * 86400, "10.0 days")],
)
def test_durations_as_people_say_them(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text
