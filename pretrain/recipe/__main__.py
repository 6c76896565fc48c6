"""The command `python -m pretrain.recipe TEXT… OUT`: from tokenised text to a model directory; `make model` calls it.

A corpus is built, fastText is trained on it (or word vectors are given), the two vector tables are made, and the
encoder is trained. `OUT` is then a run directory; its `model/` has a model card and, where that is asked for, the word
vectors.
"""

import argparse
import sys
from collections.abc import Sequence

from elmoc.errors import InputError, run_command
from pretrain import CONFIGS
from pretrain.recipe.options import add_options, require_no_corpus, require_text, shared_values


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pretrain.recipe",
        description="Make a model directory from tokenised text. Safe to interrupt; goes on by the same command.",
    )
    add_options(parser, text="text")
    parser.add_argument(
        "--config",
        default=str(CONFIGS / "small.toml"),
        metavar="TOML",
        help="of the training (pretrain/configs/small.toml)",
    )
    parser.add_argument(
        "--vectors", metavar="FILE", help="word vectors to use (default: fastText, trained on the text)"
    )
    parser.add_argument(
        "--targets", default="whiten", metavar="WHAT", help="how target vectors are post-processed (%(default)s)"
    )
    parser.add_argument("--bundle", action="store_true", help="put the word vectors into the model directory")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    arguments = parser().parse_args(argv)
    return run_command(lambda: make_model(arguments))


def make_model(arguments: argparse.Namespace) -> None:
    """Make a model as the parsed command line says; raises `InputError` where a step fails."""
    from elmoc.word_vectors.transform import TransformKind
    from pretrain.config import load_config
    from pretrain.recipe.begun import begun, require_no_file
    from pretrain.recipe.plan import Recipe, require_kinds
    from pretrain.recipe.steps import run_steps

    # what is wrong is said now, and not after hours
    require_no_file(arguments.output)
    require_no_corpus(arguments.set, "the corpus that the encoder is trained on is made here, of the text")
    config = load_config(arguments.config, arguments.set, quiet=True)
    names = {config.data.input_vectors, config.data.target_vectors}
    if config.input_layer.shared or not names <= {"input", "target"}:
        raise InputError(
            "this command makes the tables `input` and `target` of word vectors, and trains on these alone: with other "
            "data.input_vectors, data.target_vectors or input_layer.kind, run its steps one by one (see the page "
            "docs/own_text.md)"
        )
    require_kinds(arguments.text, config.data.sources)
    TransformKind.parse(arguments.targets)
    recipe = Recipe(
        config=arguments.config,
        vectors=arguments.vectors,
        targets=arguments.targets,
        bundle=arguments.bundle,
        **shared_values(arguments),
    )
    recipe.require_vectors()
    require_text(arguments, recipe.corpus)
    with begun(arguments.output, "python -m pretrain.recipe", recipe.options, open_options=lambda: recipe.open_options):
        run_steps(recipe.steps())
    print(f"the model is in {arguments.output / 'model'}: its README.md is the model card")


if __name__ == "__main__":
    sys.exit(main())
