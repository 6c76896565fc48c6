"""Readers of `pretrain`: configs, run directories and checkpoints."""

import json
import tomllib
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from downstream.suite.report import encoder_of_report, require_own_report
from elmoc.errors import InputError
from elmoc.model_directory import read_model_directory, write_model_directory
from pretrain.__main__ import parser, pretrain
from pretrain.adapt.settings import SLOWER, adapted, learning_rate, recipe_of
from pretrain.config import config_to_dict, load_config
from pretrain.plot import plot
from pretrain.recipe.__main__ import parser as recipe_parser
from pretrain.recipe.begun import begun
from pretrain.recipe.options import require_text
from pretrain.recipe.tables_report import VECTORS, read_report, read_word_accuracy
from pretrain.run.directory import RunDirectory, read_metrics
from pretrain.setup import TrainingSetup, set_up
from pretrain.train import train
from tests.fuzz.mutations.arrays import CHECKPOINT
from tests.fuzz.mutations.json_tree import JSON, JSON_LINES
from tests.fuzz.mutations.text import TEXT
from tests.fuzz.readers.reader import Reader, consistent


@lru_cache
def setup_in(folder: Path) -> TrainingSetup:
    return set_up(load_config(folder / "run.toml", [f"data.corpus={folder / 'corpus'}"]))


def read_config(folder: Path) -> None:
    """The settings are those of the file."""
    corpus = {"corpus": str(folder / "corpus")}
    config = load_config(folder / "run.toml", [f"data.corpus={corpus['corpus']}"])
    assert set_up(config).updates > 0
    found, said = config_to_dict(config), tomllib.loads((folder / "run.toml").read_text(encoding="utf-8-sig"))
    for section, settings in (said | {"data": said.get("data", {}) | corpus}).items():
        assert {name: found[section][name] for name in settings} == settings


def resume(folder: Path) -> Any:
    """Go on with a run whose last update is done: its state is all that there is to see."""
    setup, run = setup_in(folder), RunDirectory(folder / "run")
    train(setup, run, resumed=run.resume(setup.config), max_seconds=None)
    weights = setup.encoder.weights() | setup.output_layers.state_dict()
    return {name: each.numpy() for name, each in weights.items()}, run.metrics.read_bytes()


def read_start(folder: Path) -> None:
    run = RunDirectory(folder / "run")
    found = run.init_from, run.was_started_by("x"), run.started_from
    said = json.loads((folder / "run/start.json").read_bytes())
    assert found == (said["init_from"], said.get("launch") == "x", said.get("started_from"))


def resume_by_command(folder: Path) -> None:
    pretrain(parser().parse_args([str(folder / "run.toml"), str(folder / "run"), "--resume"]))


def read_all_metrics(folder: Path) -> None:
    """All lines of a kind are read; of the last, which a kill may have left, a part may be missing."""
    found = {kind: read_metrics(folder / "run", kind) for kind in ("train", "evaluation")}
    *lines, last = (folder / "run/metrics.jsonl").read_bytes().removesuffix(b"\n").split(b"\n")
    said = list(map(json.loads, lines))
    with suppress(ValueError, TypeError, RecursionError):
        said.append({**json.loads(last)})
    for kind, of_kind in found.items():
        assert any(of_kind == [each for each in some if each["kind"] == kind] for some in (said, said[: len(lines)]))


def draw(folder: Path) -> None:
    plot(str(folder / "run"), str(folder / "out/curve.png"))


def go_on_with_recipe(folder: Path) -> None:
    """Something was made in the directory: it is gone on with only where the file says that it was begun so."""
    options = {"texts": ["a.txt"], "share": 0.3}
    with begun(folder / "recipe", "x", options):
        said = json.loads((folder / "recipe/begun.json").read_bytes())
    assert said == said | {"command": "x", **options}


def look_at_text(folder: Path) -> None:
    out = folder / "out/recipe"
    require_text(recipe_parser().parse_args([str(folder / "text/raw.txt"), str(out)]), out / "corpus")


def read_recipe(folder: Path) -> None:
    """The settings that a model is adapted with are those of its run."""
    model = read_model_directory(folder / "run")
    recipe = recipe_of(folder / "run", model)
    rate = learning_rate(recipe, model, given=None)
    where = {"corpus": folder / "corpus", "tokens": 1000, "weights": {}, "epochs": 1.0, "rate": rate}
    settings = adapted(recipe, model, **where)
    assert settings["train"]["streams"] > 0
    if (folder / "run/config.json").exists():
        said = json.loads((folder / "run/config.json").read_bytes())
        assert rate == SLOWER * said["schedule"]["base"]
        assert all(value == said["optimiser"][name] for name, value in settings["optimiser"].items())
        assert settings["optimiser"].keys() == said.get("optimiser", {}).keys()


def export_again(folder: Path) -> Any:
    """Write a model over itself: its card is renewed or kept, and the rest is what it was."""
    path = folder / "run/model"
    write_model_directory(path, read_model_directory(path))
    return (path / "model.safetensors").read_bytes(), (path / "README.md").exists()


def read_suite_report(folder: Path) -> None:
    """The scores are those of the file."""
    encoder_of_report(folder / "suite/report.json")
    with suppress(InputError):  # it is of another encoder
        require_own_report(folder / "suite/report.json", {"directory": "elsewhere"})
    found, said = read_report(folder / "suite/report.json"), json.loads((folder / "suite/report.json").read_bytes())
    means = {row["dataset"]: f"{row['scores'][VECTORS]['mean']:.2f}" for row in said["rows"]}
    assert {name: scores[VECTORS] for name, scores in found.scores.items()} == means
    assert found.suite == said.get("identity")


def read_accuracy(folder: Path) -> None:
    """What is read is the content of a file that is of the run's model and words."""
    found, file = read_word_accuracy(folder / "run", {"updates": 2}), folder / "run/word_accuracy.json"
    said = json.loads(file.read_bytes(), parse_int=float) if file.exists() else {}
    assert found == (said if said | {"updates": 2, "words": 50, "candidates": 10} == said else None)


READERS = (
    Reader(
        name="run toml",
        target="run.toml",
        mutations=TEXT,
        read=read_config,
        right=consistent,
        names=("run.toml", "sample/corpus", "train."),
        share=0.5,
    ),
    Reader(
        name="run config",
        target="run/config.json",
        mutations=JSON,
        read=resume_by_command,
        right=consistent,
        names=("sample/run",),
        writes=True,
    ),
    Reader(
        name="recipe begun",
        target="recipe/begun.json",
        mutations=JSON,
        read=go_on_with_recipe,
        right=consistent,
        names=("sample/recipe",),
        share=0.5,
    ),
    Reader(
        name="text of a recipe",
        target="text/raw.txt",
        mutations=TEXT,
        read=look_at_text,
        right=consistent,
        names=("raw.txt",),
        share=0.3,
    ),
    Reader(
        name="recipe of a run",
        target="run/config.json",
        mutations=JSON,
        read=read_recipe,
        right=consistent,
        names=("sample/run",),
        share=0.5,
    ),
    Reader(
        name="suite report",
        target="suite/report.json",
        mutations=JSON,
        read=read_suite_report,
        right=consistent,
        share=0.5,
    ),
    Reader(
        name="word accuracy",
        target="run/word_accuracy.json",
        mutations=JSON,
        read=read_accuracy,
        right=consistent,
        names=("sample/run",),
        share=0.3,
    ),
    Reader(
        name="model card",
        target="run/model/README.md",
        mutations=TEXT,
        read=export_again,
        is_file=False,
        writes=True,
        share=0.3,
    ),
    Reader(name="run start", target="run/start.json", mutations=JSON, read=read_start, right=consistent),
    Reader(
        name="checkpoint",
        target="run/checkpoints/000000002.pt",
        mutations=CHECKPOINT,
        read=resume,
        names=("000000002.pt", "data."),
        writes=True,
        share=0.5,
    ),
    Reader(name="metrics", target="run/metrics.jsonl", mutations=JSON_LINES, read=read_all_metrics, right=consistent),
    Reader(
        name="plot",
        target="run/metrics.jsonl",
        mutations=JSON_LINES,
        read=draw,
        right=consistent,
        names=("sample/run",),
        share=0.1,
    ),
)
