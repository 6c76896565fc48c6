"""The command `python -m pretrain.recipe TEXT… OUT`: from tokenised text to a model directory; `make model` calls it.

A corpus is built, fastText is trained on it (or word vectors are given), the two vector tables are made, and the
encoder is trained. `OUT` is then a run directory; its `model/` has a model card and, where that is asked for, the word
vectors.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from elmoc.errors import InputError, run_command

CONFIG = "pretrain/configs/small.toml"


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pretrain.recipe",
        description="Make a model directory from tokenised text. Safe to interrupt; goes on by the same command.",
    )
    parser.add_argument(
        "text", nargs="+", help="tokenised text: files, .gz files, folders, quoted globs; NAME=PATH names its kind"
    )
    parser.add_argument("output", type=Path, help="the run directory to make")
    parser.add_argument("--held-out", nargs="+", default=[], metavar="FILE", help="text to be evaluated on alone")
    parser.add_argument("--config", default=CONFIG, metavar="TOML", help="of the training (%(default)s)")
    parser.add_argument("--max-time", metavar="TIME", help="fit the training into this time, e.g. 3h")
    parser.add_argument(
        "--vectors", metavar="FILE", help="word vectors to use (default: fastText, trained on the text)"
    )
    parser.add_argument(
        "--targets", default="whiten", metavar="WHAT", help="how target vectors are post-processed (%(default)s)"
    )
    parser.add_argument("--bundle", action="store_true", help="put the word vectors into the model directory")
    parser.add_argument("--licence", default="", metavar="TEXT", help="of the text, for the model card")
    parser.add_argument("--name", default="", metavar="TEXT", help="of the model, for the model card")
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="override a setting of training"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    arguments = parser().parse_args(argv)
    return run_command(lambda: make_model(arguments))


def make_model(arguments: argparse.Namespace) -> None:
    """Make a model as the parsed command line says; raises `InputError` where a step fails."""
    from elmoc.word_vectors.transform import TransformKind
    from pretrain.config import load_config
    from pretrain.recipe.begun import begun
    from pretrain.recipe.plan import Recipe
    from pretrain.recipe.steps import run_steps

    # what is wrong is said now, and not after hours
    load_config(arguments.config, arguments.set)
    TransformKind.parse(arguments.targets)
    vectors = arguments.vectors
    if vectors is not None and not vectors.startswith("random:") and not os.path.exists(vectors):
        raise InputError(f"--vectors {vectors} does not exist: check the name")
    recipe = Recipe(
        texts=tuple(arguments.text),
        held_out=tuple(arguments.held_out),
        output=arguments.output,
        config=arguments.config,
        max_time=arguments.max_time,
        vectors=vectors,
        targets=arguments.targets,
        bundle=arguments.bundle,
        card={"name": arguments.name, "licence": arguments.licence},
        sets=tuple(arguments.set),
    )
    with begun(arguments.output, "python -m pretrain.recipe", recipe.options):
        run_steps(recipe.steps())
    print(f"the model is in {arguments.output / 'model'}: its README.md is the model card")


if __name__ == "__main__":
    sys.exit(main())
