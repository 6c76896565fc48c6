"""Tiny runs: how tests start them, and look at what they leave."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from elmoc.corpus import Corpus
from elmoc.devices import has_bf16
from elmoc.word_vectors.sources import RandomVectors
from pretrain.__main__ import main
from pretrain.config import load_config
from pretrain.run.directory import RunDirectory, read_checkpoint
from pretrain.setup import TrainingSetup, set_up
from tests.tiny import add_table, learnable_sentences, write_corpus

needs_bf16 = pytest.mark.skipif(not has_bf16(torch.device("cpu")), reason="this CPU has no bf16 instructions")

TINY = {
    "encoder.projection_size": 8,
    "encoder.cell_size": 12,
    "data.input_vectors": "raw",
    "data.target_vectors": "raw",
    "train.streams": 4,
    "train.mix_shards": 1,
    "train.window": 5,
    "train.updates": 12,
    "train.device": "cpu",
    "schedule.base": 0.01,
    "evaluation.every_updates": 12,
    "evaluation.words": 100,
    "evaluation.candidates": 20,
    "log.every_updates": 4,
}

# of every kind of part, what differs from `TINY`; those of subwords are for a corpus of subwords
PARTS: dict[str, dict[str, Any]] = {
    "plain_lstm": {"encoder__kind": "plain_lstm", "encoder__cell_size": None},
    "transformer": {"encoder__kind": "transformer", "encoder__cell_size": None, "encoder__heads": 2},
    "l2": {"output_layer__loss": "l2"},
    "von_mises_fisher": {"output_layer__loss": "von_mises_fisher"},
    "max_margin": {"output_layer__loss": "max_margin"},
    "contrastive": {"output_layer__kind": "contrastive"},
    "sampled": {"output_layer__kind": "sampled", "output_layer__samples": 6},
    "fixed": {"output_layer__kind": "fixed", "output_layer__samples": 6},
    "adaptive": {"output_layer__kind": "adaptive", "output_layer__cutoffs": [4, 12], "output_layer__reduction": 2},
    "softmax": {"output_layer__kind": "softmax"},
    "character_cnn": {"input_layer__kind": "character_cnn", "input_layer__filters": [[1, 6], [2, 6]]},
    "alone": {
        "input_layer__kind": "alone",
        "input_layer__inner_size": 20,
        "output_layer__kind": "softmax",
        "output_layer__tied": True,
    },
    "subwords": {
        "input_layer__kind": "subwords",
        "output_layer__kind": "softmax",
        "output_layer__tied": True,
        "output_layer__projection_regularisation": 0.15,
    },
}
# `python -m pretrain`, which sends itself a signal before the N-th of its updates, lines of its log and renamed files
SIGNALLED = """
import os, sys
from pretrain.__main__ import main
from pretrain.run.directory import MetricsLog
from pretrain.step import TrainStep

number, left = int(sys.argv[1]), int(sys.argv[2])

def counted(function):
    def call(*arguments, **options):
        global left
        left -= 1
        if not left:
            os.kill(os.getpid(), number)
        return function(*arguments, **options)
    return call

TrainStep.__call__, MetricsLog.write, os.replace = map(counted, (TrainStep.__call__, MetricsLog.write, os.replace))
sys.exit(main(sys.argv[3:]))
"""


def signalled(number: int, event: int, arguments: list[str]) -> list[str]:
    """The words of a `WarmProcess`: a run that sends itself a signal before an event (see `SIGNALLED`)."""
    return ["-c", SIGNALLED, str(int(number)), str(event), *arguments]


class TinyRuns:
    """Starts runs on the tiny corpus, each in a directory of its own under `folder`."""

    def __init__(self, folder: Path, corpus: Path) -> None:
        self.folder = folder
        self.config = folder / "empty.toml"
        self.config.write_text("")
        self.corpus = corpus

    def arguments(self, name: str, *options: str, **settings: Any) -> list[str]:
        """The command line of a run; `train__seed=2` stands for `--set train.seed=2`, None leaves a setting out."""
        values = TINY | {"data.corpus": str(self.corpus)}
        values |= {key.replace("__", "."): value for key, value in settings.items()}
        sets = [f"--set={key}={json.dumps(value)}" for key, value in values.items() if value is not None]
        return [str(self.config), str(self.folder / name), *sets, *options]

    def status(self, name: str, *options: str, **settings: Any) -> int:
        """Run the command; its exit status."""
        return main(self.arguments(name, *options, **settings))

    def setup(self, **settings: Any) -> TrainingSetup:
        """The set-up of a run that is not started."""
        return set_up(
            load_config(self.config, [each.removeprefix("--set=") for each in self.arguments("", **settings)[2:]])
        )

    def run(self, name: str, *options: str, **settings: Any) -> RunDirectory:
        """Run the command, which has to succeed; its run directory."""
        assert self.status(name, *options, **settings) == 0
        return RunDirectory(self.folder / name)


@pytest.fixture
def named_corpus(tmp_path: Path) -> Corpus:
    """A tiny corpus of two sources, `news` and `talk`, with the table `raw`."""
    shards = [learnable_sentences(count, seed) for seed, count in enumerate((60, 30, 20, 25, 40))]
    names = ["news", "talk", "news", "talk", "news"]
    corpus = write_corpus(tmp_path / "named", shards[:3], shards[3:], sources=names)
    add_table(corpus, "raw", RandomVectors(seed=5, size=8))
    return corpus


@pytest.fixture(scope="module")
def module_runs(tmp_path_factory: pytest.TempPathFactory, tiny_corpus: Corpus) -> TinyRuns:
    return TinyRuns(tmp_path_factory.mktemp("runs"), tiny_corpus.path)


@pytest.fixture
def runs(tmp_path: Path, tiny_corpus: Corpus) -> TinyRuns:
    return TinyRuns(tmp_path, tiny_corpus.path)


def last_checkpoint(run: RunDirectory) -> dict[str, Any]:
    return read_checkpoint(run.checkpoint_paths()[-1])


def assert_resumes_exactly(runs: TinyRuns, name: str, kept: int, **settings: Any) -> None:
    """A copy of a run without its checkpoints after the update `kept`, resumed, ends bit for bit as the run did."""
    run, resumed = (RunDirectory(runs.folder / each) for each in (name, f"{name}_resumed"))
    shutil.copytree(run.path, resumed.path)
    for path in resumed.checkpoint_paths():
        if read_checkpoint(path)["update"] > kept:
            path.unlink()
    assert last_checkpoint(resumed)["update"] == kept
    runs.run(resumed.path.name, "--resume", **settings)
    assert_same(last_checkpoint(resumed), last_checkpoint(run), but=("seconds", "metrics_bytes"))


def assert_same(one: Any, other: Any, where: str = "", but: tuple[str, ...] = ()) -> None:
    """Nested dictionaries and lists of tensors and plain values are equal, bit for bit; keys `but` are passed over."""
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one.keys() - set(but):
            assert_same(one[key], other[key], f"{where}.{key}", but)
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            assert_same(left, right, f"{where}[{index}]", but)
    elif isinstance(one, torch.Tensor):
        assert torch.equal(one, other), where
    else:
        assert one == other, where
