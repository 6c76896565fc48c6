"""Adapting a joined model: what its two runs had alike is gone on with, and what they had not is said."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elmoc.corpus import Corpus
from elmoc.model_directory import read_model_directory
from pretrain.adapt.__main__ import general_corpus, main
from pretrain.adapt.record import agreed, records_of
from pretrain.adapt.settings import recipe_of
from pretrain.join import join
from tests.pretrain.conftest import TinyRuns
from tests.tiny import learnable_sentences

Fails = Callable[[int], str]
LAYER = {"kind": "contrastive", "extra_candidates": 3, "cosine_weight": 5.0}
SETTINGS = {f"output_layer__{name}": value for name, value in LAYER.items()}
SETTINGS |= {"optimiser__weight_decay": 0.1, "train__updates": 4, "evaluation__every_updates": 4}
SHORT = ["evaluation.words=60", "evaluation.candidates=20", "evaluation.every_updates=6", "train.updates=6"]


@pytest.fixture
def new_text(tmp_path: Path) -> Path:
    (tmp_path / "new.txt").write_text("\n".join(map(" ".join, learnable_sentences(300, seed=8))) + "\n")
    return tmp_path / "new.txt"


def joined(runs: TinyRuns, **of_backward: Any) -> Path:
    """A model whose directions were trained apart, the backward one with settings that differ."""
    paths = []
    for direction, more in (("forward", {}), ("backward", of_backward)):
        settings = SETTINGS | {"train__directions": [direction]} | more
        paths.append(str(runs.run(direction, **settings).path))
    join(*paths, str(runs.folder / "joined"))
    return runs.folder / "joined"


def adapt(model: Path, *words: object) -> int:
    return main([str(model), *map(str, words), *(f"--set={each}" for each in (*SHORT, "train.device=cpu"))])


def test_it_goes_on_with_the_settings_of_both(
    runs: TinyRuns,
    new_text: Path,
    tiny_corpus: Corpus,
    tmp_path: Path,
    steps_here: list[list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    model, out = joined(runs, train__seed=2), tmp_path / "out"
    assert adapt(model, new_text, out) == 0
    assert steps_here[-1][0] == "pretrain"
    printed = capsys.readouterr()
    assert f"general text is taken from {tiny_corpus.path}" in printed.out
    assert "general text, reciprocal rank" in printed.out
    assert "warning: the directions" not in printed.err, "what is not taken over anyway may differ"
    config = json.loads((out / "config.json").read_text())
    assert LAYER.items() <= config["output_layer"].items()
    assert config["optimiser"]["weight_decay"] == 0.1
    assert config["schedule"]["base"] == 0.005
    assert {"streams": 4, "window": 5, "directions": ["forward", "backward"]}.items() <= config["train"].items()


def test_its_settings_are_those_of_one_run_that_trains_both(runs: TinyRuns) -> None:
    both = runs.run("both", **SETTINGS).path / "model"
    first, second = (recipe_of(path, read_model_directory(path)) for path in (both, joined(runs)))
    del first["train"]["directions"]
    assert first == second


def test_what_its_runs_had_differently_is_said(
    runs: TinyRuns,
    new_text: Path,
    tmp_path: Path,
    steps_here: list[list[str]],
    capsys: pytest.CaptureFixture[str],
    error_line: Fails,
) -> None:
    differing = {"train__window": 4, "optimiser__weight_decay": 0.2, "schedule__base": 0.02}
    model, out = joined(runs, **differing), tmp_path / "out"
    assert (
        f"the directions of {model} were trained at different rates (forward 0.01, backward 0.02): give --learning-rate"
    ) in error_line(adapt(model, new_text, out))
    assert not out.exists()
    record = json.loads((model / "config.json").read_text())
    record["training"]["backward"]["recipe"]["data.sources"] = {"talk": 2.0}
    (model / "config.json").write_text(json.dumps(record))
    assert adapt(model, new_text, out, "--learning-rate", 0.01, "--set", "train.window=4") == 0
    warnings = capsys.readouterr().err
    assert "different weights of the kinds of text (forward {}, backward {'talk': 2.0}): general text has" in warnings
    assert (
        f"warning: the directions of {model} were trained with different settings, so that these are not taken over "
        "(--set chooses them): optimiser.weight_decay (forward 0.1, backward 0.2)\n"
    ) in warnings
    config = json.loads((out / "config.json").read_text())
    assert config["optimiser"]["weight_decay"] == 0
    assert LAYER.items() <= config["output_layer"].items()


def test_general_text_is_of_the_corpus_that_both_read(tiny_corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    record = {"corpus": str(tiny_corpus.path), "corpus_tokens": tiny_corpus.train_tokens}
    assert general_corpus(None, {"forward": record, "backward": dict(record)}) == str(tiny_corpus.path)
    capsys.readouterr()
    assert general_corpus(None, {"forward": record, "backward": record | {"corpus": "other"}}) is None
    said = "no general text is taken: the model's directions were trained on different corpora (corpus: forward "
    assert capsys.readouterr().out.startswith(f"{said}{tiny_corpus.path}, backward {os.path.realpath('other')})")
    assert general_corpus("given", {"forward": record, "backward": {}}) == "given"
    assert general_corpus("none", {"forward": record, "backward": {}}) is None


def test_records_of_halves_of_joined_models() -> None:
    one, two, three = ({"updates": number} for number in (1, 2, 3))
    again = {"forward": {"forward": one, "backward": two}, "backward": three}
    assert records_of(again) == {"forward": one, "backward": three}
    assert records_of(one | {"forward": 1}) == {"": one | {"forward": 1}}


def test_what_records_say_alike() -> None:
    forward, backward = {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 4, "d": 5}
    assert agreed({"": forward}) == (forward, {})
    assert agreed({"forward": forward, "backward": backward}) == (
        {"a": 1},
        {"b": "forward 2, backward 4", "c": "forward 3, backward unknown", "d": "forward unknown, backward 5"},
    )
