"""The description of a run: its size and speed, without starting it."""

import math
import re
from collections.abc import Callable

import pytest
import torch

from elmoc.corpus import Corpus
from elmoc.settings import counted, duration
from pretrain import describe as description
from pretrain.config import load_config
from pretrain.describe import measure
from pretrain.setup import set_up
from tests.pretrain.conftest import TinyRuns
from tests.pretrain.data.reading import updates_of_epoch

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
    per_epoch = updates_of_epoch(tiny_corpus, 4, 5)
    assert f"updates: {2 * per_epoch:,} of 4 streams × 5 words ({per_epoch:,} an epoch)" in printed
    assert f"{tiny_corpus.types:,} types, {tiny_corpus.train_tokens:,} training tokens" in printed
    assert "types without a target vector: 2" in printed
    said = r"speed on cpu in fp32: about [\d,]+ words/s, so \d+ s, and \d+ s for \d+ evaluations: \d+ s in all"
    assert re.search(said, printed)


def test_text_that_is_not_read_is_named(runs: TinyRuns, capsys: pytest.CaptureFixture[str]) -> None:
    warning = "warning: an epoch reads "
    runs.run("run", "--describe", train__streams=60)
    assert warning in capsys.readouterr().out
    runs.run("run", train__streams=60, train__updates=1)
    assert warning in capsys.readouterr().err
    runs.run("run", "--resume", train__streams=60, train__updates=1)
    assert warning not in capsys.readouterr().err, "a run that goes on reads as it did"
    runs.run("run", "--describe", train__streams=4)
    assert warning not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "output"),
    [
        ({}, f"{2 * (P * E + E)} parameters"),
        ({"output_layer__kind": "contrastive"}, f"{2 * (P * E + E + 2)} parameters"),
        ({"output_layer__kind": "fixed"}, f"{2 * (P * E + E)} parameters"),
        ({"output_layer__kind": "sampled"}, f"{22 * (P + 1)} parameters"),
        ({"output_layer__kind": "adaptive", "output_layer__cutoffs": [10]}, f"{P * 11 + 2 * (P + 12)} parameters"),
        ({"output_layer__kind": "softmax"}, f"{22 * (P + 1)} parameters"),
    ],
)
def test_each_part_is_weighed(
    runs: TinyRuns, tiny_corpus: Corpus, settings: dict[str, object], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tiny_corpus.types == 22
    runs.run("run", "--describe", **settings)
    printed = capsys.readouterr().out
    layer = 4 * C * P + 4 * C * P + P * C
    assert f"  encoder: {2 * (E * P + P + 2 * P + 2 * (layer + 4 * C + 2 * P)):,} parameters" in printed
    assert f"  output layer: {output}" in printed


@pytest.mark.parametrize("every", [0, 7])
def test_what_fits_into_a_time_is_described(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], every: int
) -> None:
    """Of 0.5 seconds an update of 4 × 5 words and 2 an evaluation, of which one is before the first update."""
    monkeypatch.setattr(description, "measure", lambda setup: 0.5 / 20)
    monkeypatch.setattr(description, "measure_evaluation", lambda setup: 2.0)
    runs.run("run", "--describe", "--max-time=1h", train__updates=10**6, evaluation__every_updates=every)
    printed = capsys.readouterr().out.splitlines()
    updates = int((3600 - 2 - 10 * 2) / 0.5) if every == 0 else int((3600 - 2 - 2) / (0.5 + 2 / 7))
    epochs = updates / int(re.search(r"\(([\d,]+) an epoch\)", "".join(printed))[1].replace(",", ""))
    evaluations = 11 if every == 0 else 1 + math.ceil(updates / every)
    assert printed[-1 - bool(every)] == (
        f"speed on cpu in fp32: about 40 words/s, so 60 min are enough for {updates:,} updates, "
        f"{updates * 20 / 1e6:.1f}M words, {epochs:,.2f} epochs; {duration(2.0 * evaluations)} of it are for "
        f"{evaluations:,} evaluations"
    )
    assert "1,000,000" not in "".join(printed), "the length that the config gives"


@pytest.mark.parametrize(
    ("seconds", "evaluation", "updates", "late"), [(60, 30.0, 30, 300 - 15), (60, 100.0, 1, 100 + 40), (30, 2.0, 28, 6)]
)
def test_a_time_that_is_too_short_is_described(
    runs: TinyRuns,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    seconds: int,
    evaluation: float,
    updates: int,
    late: int,
) -> None:
    """Half of what is left after the first evaluation is for updates of 0.5 seconds."""
    monkeypatch.setattr(description, "measure", lambda setup: 0.5 / 20)
    monkeypatch.setattr(description, "measure_evaluation", lambda setup: evaluation)
    runs.run("run", "--describe", f"--max-time={seconds}s", train__updates=10**6, evaluation__every_updates=0)
    first, second = capsys.readouterr().out.splitlines()[-2:]
    assert f"so {duration(seconds)} are enough for {counted(updates, 'update')}, " in first
    assert "evaluation" not in first
    assert second.startswith(f"evaluations of {evaluation:.1f} s each take longer than --max-time allows")
    assert f"the run will end about {late} s late" in second


def test_a_run_that_goes_on_is_not_described(runs: TinyRuns, error_line: Callable[[int], str]) -> None:
    said = error_line(runs.status("run", "--describe", "--resume"))
    assert "--describe looks at a run from its beginning: leave --resume out" in said


def test_describe_looks_at_an_existing_run_without_touching_it(
    runs: TinyRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs.run("run")
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    runs.run("run", "--describe")
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
    assert capsys.readouterr().out.count("trainable parameters") == 1


def test_the_trial_leaves_the_weights_as_they_were(runs: TinyRuns) -> None:
    overrides = [argument.removeprefix("--set=") for argument in runs.arguments("run")[2:]]
    setup = set_up(load_config(runs.config, overrides))
    parameters = [*setup.encoder.parameters(), *setup.output_layers.parameters()]
    before = [parameter.clone() for parameter in parameters]
    assert measure(setup) > 0
    assert all(torch.equal(one, other) for one, other in zip(before, parameters, strict=True))
