"""The command `python -m pretrain CONFIG.toml RUN`: describe, start or resume a
training run.
"""

import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from elmoc.command_line import run_main
from elmoc.process import keep_freed_memory
from pretrain.options import TrainOptions


@dataclass(frozen=True, kw_only=True)
class TrainCommand(TrainOptions):
    """The command line."""

    config: Annotated[
        str,
        Meta(
            description="a TOML file, such as pretrain/configs/small.toml "
            "(docs/settings.md lists its keys)"
        ),
    ]
    run: Annotated[
        Path,
        Meta(description="the run directory to make, or with --resume to go on with"),
    ]
    set: Annotated[
        list[str],
        Meta(
            description="override a setting, such as train.epochs=2 (repeatable)",
            extra={"metavar": "SECTION.KEY=VALUE", "repeat": True},
        ),
    ] = field(default_factory=list)
    resume: Annotated[
        bool, Meta(description="go on with the run from its last checkpoint")
    ] = False
    describe: Annotated[
        bool,
        Meta(
            description="print sizes, and time and memory of a trial update, and stop"
        ),
    ] = False


def run(command: TrainCommand) -> None:
    """Do what the command line says."""
    # Before PyTorch starts threads.
    keep_freed_memory()
    # PyTorch is imported for the work alone, so that the help is quick.
    from pretrain.config import load_config

    config = load_config(command.config, command.set)
    if command.describe:
        from pretrain.describe import describe
        from pretrain.setup import set_up

        print(describe(set_up(config, command.init_from)))
        return
    from pretrain.trained_run import start_or_resume

    start_or_resume(config, command.run, command, resume=command.resume)


main = partial(
    run_main,
    TrainCommand,
    run,
    prog="python -m pretrain",
    description="Train a contextual encoder.",
)

if __name__ == "__main__":
    sys.exit(main())
