"""The command `python -m pretrain.recipe TEXT… OUT`: from tokenised text to a model;
`make model` calls it.

A corpus is built, fastText is trained on it (or word vectors are given), two vector
tables are made, and the encoder is trained. With `--init-from MODEL` a trained model
goes on with new text: its word vectors are taken, and general text of its own corpus is
mixed in. `OUT` is then a run directory, whose name can be given wherever a model is
asked for.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from elmoc.errors import run_command


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pretrain.recipe",
        description="Make a model from tokenised text, or adapt one to new text (--init-from). Safe to interrupt; goes "
        "on by the same command.",
    )
    parser.add_argument(
        "text",
        nargs="+",
        help="tokenised text: files, .gz files, folders, quoted globs; NAME=PATH names its kind",
    )
    parser.add_argument("output", type=Path, help="the run directory to make")
    parser.add_argument(
        "--max-time",
        metavar="TIME",
        help="how long the training takes, e.g. 20m, 3h (default: the text is read once, or twice with --init-from)",
    )
    parser.add_argument(
        "--config",
        metavar="TOML",
        help="settings of the training (default: of pretrain/configs the one for text, time and machine)",
    )
    parser.add_argument(
        "--vectors",
        metavar="FILE",
        help="word vectors to use (default: fastText trained on the text, or the model's)",
    )
    parser.add_argument(
        "--fasttext",
        metavar="OPTIONS",
        help="options of data_scripts.train_fasttext, e.g. '--minn 2 --maxn 5' for a language of many endings",
    )
    parser.add_argument(
        "--targets",
        default="whiten",
        metavar="WHAT",
        help="how target vectors are post-processed (%(default)s)",
    )
    parser.add_argument(
        "--init-from", metavar="MODEL", help="the model or run directory to go on from"
    )
    parser.add_argument(
        "--general",
        metavar="CORPUS",
        help="with --init-from: corpus directory of general text to mix in (default: the corpus that the model was "
        "trained on, where it is there; 'none' for none)",
    )
    parser.add_argument(
        "--general-share",
        type=float,
        default=0.3,
        metavar="X",
        help="share of general text in the words read (%(default)s)",
    )
    parser.add_argument(
        "--held-out",
        nargs="+",
        default=[],
        metavar="FILE",
        help="text that is evaluated on, and not trained on (default: a part of the text)",
    )
    parser.add_argument(
        "--leave-out",
        nargs="+",
        default=[],
        metavar="FILE",
        help="tokenised text whose sentences must not be read, such as the parts of tasks that you report scores on",
    )
    parser.add_argument(
        "--bundle",
        action="store_true",
        help="put the word vectors into the model directory",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="override a setting of training",
    )
    return parser


def make_model(arguments: argparse.Namespace) -> None:
    """Make a model as the parsed command line says; raises `InputError` where a step
    fails.
    """
    from elmoc.files.writing import locked
    from pretrain.recipe.plan import Recipe
    from pretrain.recipe.steps import run_steps

    recipe = Recipe(arguments)
    with locked(recipe.record):
        recipe.begin()
        run_steps(recipe.steps())
    run = arguments.output
    print(
        f"give {run} wherever a model is asked for; its card is {run}/model/README.md"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    arguments = parser().parse_args(argv)
    return run_command(lambda: make_model(arguments))


if __name__ == "__main__":
    sys.exit(main())
