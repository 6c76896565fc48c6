"""The command `python -m pretrain.recipe TEXT… OUT`: from text to a model;
`make model` calls it.

`OUT` is a run directory, whose name can be given wherever a model is asked for.
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from elmoc.command_line import run_main
from elmoc.process import keep_freed_memory
from pretrain.recipe.options import RecipeOptions


@dataclass(frozen=True, kw_only=True)
class RecipeCommand(RecipeOptions):
    """The command line."""

    text: Annotated[
        list[str],
        Meta(
            description="text, raw or tokenised, or rows (.jsonl, .csv, .tsv, "
            ".parquet): files, also compressed, folders, or quoted globs; NAME=PATH "
            "names its kind",
            extra={"metavar": "TEXT"},
        ),
    ]
    output: Annotated[
        Path, Meta(description="the run directory to make", extra={"metavar": "OUT"})
    ]


def run(command: RecipeCommand) -> None:
    """Do what the command line says."""
    # Before PyTorch, which the training step uses in this process, starts threads.
    keep_freed_memory()
    from pretrain.recipe.make import make_model

    make_model(command.text, command.output, command)


main = partial(
    run_main,
    RecipeCommand,
    run,
    prog="python -m pretrain.recipe",
    description="Make a model from text, or adapt one to new text "
    "(--init-from). Safe to interrupt; goes on by the same command.",
)

if __name__ == "__main__":
    sys.exit(main())
