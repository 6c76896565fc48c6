"""Training by one call from Python: it goes on where it was, Ctrl-C saves, and nothing is left behind."""

import json
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from elmoc.errors import InputError, quiet
from pretrain.config import CardConfig, load_config
from pretrain.step import TrainStep
from tests.pretrain.conftest import TinyRuns, assert_same, last_checkpoint

from pretrain import RunConfig, TrainOptions, train_encoder


@pytest.fixture
def config(runs: TinyRuns) -> RunConfig:
    return load_config(runs.config, [each.removeprefix("--set=") for each in runs.arguments("")[2:]])


def test_a_call_trains_and_the_same_call_looks_at_what_is_there(
    runs: TinyRuns, config: RunConfig, tmp_path: Path
) -> None:
    threads = torch.get_num_threads()
    config = replace(config, train=replace(config.train, threads=threads + 1))
    run = train_encoder(config, tmp_path / "run")
    assert torch.get_num_threads() == threads
    by_command = runs.run("other")
    assert_same(
        last_checkpoint(by_command)["encoder"], torch.load(tmp_path / "run/checkpoints/000000012.pt")["encoder"]
    )
    assert (run.path, run.model) == (tmp_path / "run", tmp_path / "run/model")
    assert (run.updates, run.words) == (12, 12 * 4 * 5)
    assert isinstance(run.evaluation["cosine"], float)
    assert run.evaluation["update"] == 12
    assert repr(run).startswith("TrainedRun(path=PosixPath(")
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    assert train_encoder(config, str(tmp_path / "run")) == run
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
    train_encoder(replace(config, card=CardConfig(licence="CC BY 4.0")), tmp_path / "run")
    assert "CC BY 4.0" in (run.model / "README.md").read_text()
    weights = "model/model.safetensors"
    assert (run.path / weights).read_bytes() == before[run.path / weights]


def test_other_settings_and_another_model_to_begin_from_are_named(
    runs: TinyRuns, config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = str(runs.run("first").path)
    train_encoder(config, tmp_path / "run", TrainOptions(init_from=model))
    assert train_encoder(config, tmp_path / "run", TrainOptions(init_from=model)).updates == 12
    with pytest.raises(InputError, match=r"train.seed \(was 1, is 2\)"):
        train_encoder(replace(config, train=replace(config.train, seed=2)), tmp_path / "run")
    with pytest.raises(InputError, match=rf"init_from \(was '{model}', is '/other'\)"):
        train_encoder(config, tmp_path / "run", TrainOptions(init_from="/other"))
    for module in ("elmoc.model_directory", "pretrain.run.directory"):
        monkeypatch.setattr(f"{module}.installed_models", lambda: {"tiny": Path(model) / "model"})
    train_encoder(config, tmp_path / "named", TrainOptions(init_from="tiny"))
    assert json.loads((tmp_path / "named/start.json").read_text()) == {"init_from": "tiny"}
    with pytest.raises(InputError, match=r"train\.streams is 0: Expected `int` >= 1"):
        train_encoder(replace(config, train=replace(config.train, streams=0)), tmp_path / "new")
    with pytest.raises(InputError, match="soon"):
        train_encoder(config, tmp_path / "new", TrainOptions(max_time="soon"))
    assert not (tmp_path / "new").exists()


def test_an_interrupt_saves_and_the_same_call_goes_on(
    runs: TinyRuns, config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = runs.run("whole")
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    step = TrainStep.__call__
    left = [5]

    def interrupted(*arguments: object) -> object:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGINT)
        return step(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(TrainStep, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_encoder(config, tmp_path / "run")
    assert [path.stem for path in (tmp_path / "run/checkpoints").glob("*.pt") if int(path.stem)] == ["000000005"]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == handlers
    assert not (tmp_path / "run/.config.json.lock").exists()
    assert train_encoder(config, tmp_path / "run").updates == 12
    resumed = torch.load(tmp_path / "run/checkpoints/000000012.pt")
    assert_same(resumed, last_checkpoint(whole), but=("seconds", "metrics_bytes"))


def test_it_can_be_quiet_and_in_another_thread(
    config: RunConfig, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = []

    def train() -> None:
        with quiet():
            found.append(train_encoder(config, tmp_path / "run"))

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert found[0].updates == 12
    assert capfd.readouterr() == ("", "")
