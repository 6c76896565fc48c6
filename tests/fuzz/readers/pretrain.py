"""Readers of `pretrain`: configs, run directories and checkpoints."""

from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from downstream.suite.report import encoder_of_report, require_own_report
from elmoc.errors import InputError
from elmoc.model_directory import read_model_directory, write_model_directory
from pretrain.__main__ import parser, pretrain
from pretrain.adapt.settings import adapted, learning_rate, recipe_of
from pretrain.config import load_config
from pretrain.plot import plot
from pretrain.recipe.__main__ import parser as recipe_parser
from pretrain.recipe.begun import begun
from pretrain.recipe.options import require_text
from pretrain.recipe.tables_report import read_report, read_word_accuracy
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


def read_config(folder: Path) -> Any:
    config = load_config(folder / "run.toml", [f"data.corpus={folder / 'corpus'}"])
    return set_up(config).updates > 0


def resume(folder: Path) -> Any:
    """Go on with a run whose last update is done: its state is all that there is to see."""
    setup, run = setup_in(folder), RunDirectory(folder / "run")
    train(setup, run, resumed=run.resume(setup.config), max_seconds=None)
    weights = setup.encoder.weights() | setup.output_layers.state_dict()
    return {name: each.numpy() for name, each in weights.items()}, run.metrics.read_bytes()


def read_start(folder: Path) -> Any:
    run = RunDirectory(folder / "run")
    return run.init_from, run.was_started_by("x")


def resume_by_command(folder: Path) -> None:
    pretrain(parser().parse_args([str(folder / "run.toml"), str(folder / "run"), "--resume"]))


def read_all_metrics(folder: Path) -> Any:
    return [read_metrics(folder / "run", kind) for kind in ("train", "evaluation")]


def draw(folder: Path) -> None:
    plot(str(folder / "run"), str(folder / "out/curve.png"))


def go_on_with_recipe(folder: Path) -> None:
    with begun(folder / "recipe", "x", {"texts": ["a.txt"], "share": 0.3}):
        pass


def look_at_text(folder: Path) -> None:
    out = folder / "out/recipe"
    require_text(recipe_parser().parse_args([str(folder / "text/raw.txt"), str(out)]), out / "corpus")


def read_recipe(folder: Path) -> Any:
    """The settings that a model is adapted with, each of a type that a run can be told."""
    model = read_model_directory(folder / "run")
    recipe = recipe_of(folder / "run", model)
    rate = learning_rate(recipe, model, given=None)
    where = {"corpus": folder / "corpus", "tokens": 1000, "weights": {}, "epochs": 1.0, "rate": rate}
    return adapted(recipe, model, **where)["train"]["streams"] > 0


def export_again(folder: Path) -> Any:
    """Write a model over itself: its card is renewed or kept, and the rest is what it was."""
    path = folder / "run/model"
    write_model_directory(path, read_model_directory(path))
    return (path / "model.safetensors").read_bytes(), (path / "README.md").exists()


def read_suite_report(folder: Path) -> Any:
    encoder_of_report(folder / "suite/report.json")
    with suppress(InputError):  # it is of another encoder
        require_own_report(folder / "suite/report.json", {"directory": "elsewhere"})
    return read_report(folder / "suite/report.json")


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
        read=lambda folder: read_word_accuracy(folder / "run", {"updates": 2}),
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
