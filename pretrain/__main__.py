"""The command `python -m pretrain CONFIG.toml RUN`: describe, start or resume a
training run.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from elmoc.errors import InputError, run_command
from elmoc.process import keep_freed_memory, wait_without_spinning
from elmoc.settings import parse_duration


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pretrain", description="Train a contextual encoder."
    )
    parser.add_argument(
        "config",
        help="a TOML file, such as pretrain/configs/small.toml (docs/settings.md lists its keys)",
    )
    parser.add_argument(
        "run", help="the run directory to make, or with --resume to go on with"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="override a setting, such as train.epochs=2 (repeatable)",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the run from its last checkpoint",
    )
    parser.add_argument(
        "--init-from",
        metavar="MODEL",
        help="start from the weights of a model or run directory",
    )
    parser.add_argument(
        "--max-time",
        metavar="TIME",
        help="fit the run into this time, e.g. 60m, 2h, 90s",
    )
    parser.add_argument(
        "--describe",
        action="store_true",
        help="print sizes, and time and memory of a trial update, and stop",
    )
    return parser


def describe_run(arguments: argparse.Namespace) -> None:
    """Print what the parsed command line would start; nothing is made, and a run that
    is there is not looked at.
    """
    from pretrain.config import load_config
    from pretrain.describe import describe
    from pretrain.setup import set_up

    if arguments.resume or int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError(
            "--describe looks at one process and the beginning of a run: no torchrun, no --resume"
        )
    print(
        describe(
            set_up(load_config(arguments.config, arguments.set), arguments.init_from)
        )
    )


def pretrain(arguments: argparse.Namespace) -> None:
    """Start or resume a run as the parsed command line says, together with the other
    processes of it.

    Raises `KeyboardInterrupt` when the run was asked to stop (and has saved), so that
    what follows it does not start.
    """
    from pretrain.config import all_settings, load_config
    from pretrain.distributed.processes import connect
    from pretrain.run.directory import RunDirectory
    from pretrain.setup import set_up
    from pretrain.train import train

    run = RunDirectory(arguments.run)
    with connect() as processes, ExitStack() as stack:
        resume = arguments.resume
        resumed = None
        init_from = arguments.init_from
        with processes.raise_together():
            if resume and init_from:
                raise InputError(
                    "--resume goes on with a run, --init-from starts one: give one of them"
                )
            max_seconds = (
                None
                if arguments.max_time is None
                else parse_duration(arguments.max_time)
            )
            config = load_config(arguments.config, arguments.set)
            if processes.is_rank0:
                if resume:
                    run.require_resumable(config)
                    stack.enter_context(run.locked())
                    resumed = run.last_checkpoint()
                    init_from = run.started_from() if resumed is None else None
                else:
                    run.require_new()
        resumed, init_from, max_seconds = processes.broadcast_from_rank0(
            (resumed, init_from, max_seconds)
        )
        with processes.raise_together():
            setup = set_up(
                config, init_from, processes, own_model=run.model if resume else None
            )
        if resumed is not None:
            setup.started_from = resumed["started_from"]
        arithmetic = {
            "train.device": setup.execution.device.type,
            "train.precision": setup.execution.precision,
        }
        processes.require_equal_settings(
            all_settings(config) | setup.data.fingerprints | arithmetic
        )
        with processes.raise_together():
            if processes.is_rank0 and not resume:
                stack.enter_context(run.locked())
                run.start(config, init_from)
            length = (
                f"{setup.updates:,} updates"
                if max_seconds is None
                else arguments.max_time
            )
            print(
                f"{arguments.run}: {setup.data.corpus.train_tokens:,} training {setup.data.corpus.unit}, {length}, "
                f"{setup.data.updates_per_epoch:,} updates an epoch\n"
                f"on {setup.execution.device} in {setup.execution.precision}, by {setup.implementation}, "
                f"{processes.world_size} {'process' if processes.world_size == 1 else 'processes'}"
            )
            if processes.is_rank0 and not resume and setup.data.unread_text is not None:
                print(f"warning: {setup.data.unread_text}", file=sys.stderr)
        finished = train(setup, run, resumed=resumed, max_seconds=max_seconds)
        with suppress(OSError):  # of a terminal that is closed
            said = (
                f"done: the model is in {run.model}"
                if finished
                else "stopped after saving: go on by --resume"
            )
            print(said, flush=True)
    if not finished:
        raise KeyboardInterrupt


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    wait_without_spinning()
    keep_freed_memory()
    return run_command(
        lambda: describe_run(arguments) if arguments.describe else pretrain(arguments)
    )


if __name__ == "__main__":
    sys.exit(main())
