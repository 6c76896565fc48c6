"""The command `python -m pretrain CONFIG.toml RUN`: describe, start or resume a training run."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from elmoc.errors import InputError, run_command
from elmoc.process import keep_freed_memory, wait_without_spinning
from elmoc.settings import parse_duration


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pretrain", description="Train a contextual encoder.")
    parser.add_argument("config", help="a TOML file, see pretrain/configs")
    parser.add_argument("run", help="the run directory")
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="override a setting (repeatable)"
    )
    parser.add_argument("--resume", action="store_true", help="go on with the run from its last checkpoint")
    parser.add_argument("--init-from", metavar="MODEL", help="start from the weights of a model or run directory")
    parser.add_argument("--max-time", metavar="TIME", help="fit the run into this time, e.g. 60m, 2h, 90s")
    parser.add_argument("--describe", action="store_true", help="print sizes, memory, updates and time, and stop")
    return parser


def describe_run(arguments: argparse.Namespace) -> None:
    """Print what the parsed command line would start; nothing is made, and a run that is there is not looked at."""
    from pretrain.config import load_config
    from pretrain.describe import describe
    from pretrain.distributed.rendezvous import connect
    from pretrain.setup import open_setup

    with connect() as processes, processes.raise_together():
        check_options(arguments, processes.world_size)
        max_seconds = None if arguments.max_time is None else parse_duration(arguments.max_time)
        config = load_config(arguments.config, arguments.set, quiet=not processes.is_rank0)
        print(describe(open_setup(config, processes), arguments.init_from, max_seconds))


def pretrain(arguments: argparse.Namespace) -> None:
    """Start or resume a run as the parsed command line says, together with the other processes of it.

    Raises `KeyboardInterrupt` when the run was asked to stop (and has saved), so that what follows it does not start.
    """
    from pretrain.checkpoint import Checkpoint
    from pretrain.config import fixed_settings, load_config
    from pretrain.distributed.implementations import other_implementations
    from pretrain.distributed.rendezvous import connect
    from pretrain.run.directory import RunDirectory, Start
    from pretrain.setup import make_weights, open_setup
    from pretrain.train import train

    run = RunDirectory(arguments.run)
    with connect() as processes, ExitStack() as stack:
        with processes.raise_together():
            check_options(arguments, processes.world_size)
            max_seconds = None if arguments.max_time is None else parse_duration(arguments.max_time)
            config = load_config(arguments.config, arguments.set, quiet=not processes.is_rank0)
            resume, resumed, init_from = arguments.resume, None, arguments.init_from
            if processes.is_rank0:
                resume = resume or (processes.restarted and run.was_started_by(processes.launch))
                if resume:
                    run.require_resumable()
                    stack.enter_context(run.locked())
                    resumed = run.resume(config)
                    init_from = run.init_from if resumed is None else None
                else:
                    run.require_new()
        values = None if resumed is None else resumed.to_dict()
        values, init_from, max_seconds = processes.broadcast_from_rank0((values, init_from, max_seconds))
        resumed = None if values is None else Checkpoint.from_dict(values)
        with processes.raise_together():
            setup = open_setup(config, processes)
            if processes.is_rank0 and resumed is not None:
                setup.stored_vectors = run.stored_vectors(setup.data.inputs.source)
        with processes.raise_together():
            make_weights(setup, init_from)
        same = {"log.checkpoint_updates": config.log.checkpoint_updates} | setup.arithmetic
        processes.require_equal_settings(fixed_settings(config) | setup.data.fingerprints | same)
        implementations = processes.all_gather(setup.implementation)
        with processes.raise_together():
            if processes.is_rank0 and not resume:
                stack.enter_context(run.locked())
                start = Start(init_from and os.path.abspath(init_from), processes.launch, setup.started_from)
                run.start(config, start, parameters=setup.parameters)
            if processes.is_rank0 and resume and resumed is None:
                run.require_same_model(setup.started_from)
            elif processes.is_rank0 and resume:
                setup.started_from = run.started_from
            length = setup.updates if max_seconds is None else None
            print(f"{arguments.run}: {setup.summary(length if resumed is None else resumed.updates)}")
            if processes.is_rank0 and not resume and setup.data.unread_text is not None:
                print(f"warning: {setup.data.unread_text}", file=sys.stderr)
            for line in other_implementations(implementations):
                print(line)
        finished = train(setup, run, resumed=resumed, max_seconds=max_seconds)
        if finished:
            print(f"done: the model is in {run.model}")
        else:
            with suppress(OSError):  # of a terminal that is closed
                print("stopped after saving: go on by the same command with --resume", flush=True)
    if not finished:
        raise KeyboardInterrupt


def check_options(arguments: argparse.Namespace, world_size: int) -> None:
    """Raise an `InputError` for options that do not go together."""
    if arguments.resume and arguments.init_from:
        raise InputError("--resume goes on with a run, --init-from starts one: give one of them")
    if arguments.describe and world_size > 1:
        raise InputError("--describe looks at one process: leave torchrun out")
    if arguments.describe and arguments.resume:
        raise InputError("--describe looks at a run from its beginning: leave --resume out")


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    wait_without_spinning()
    keep_freed_memory()
    return run_command(lambda: describe_run(arguments) if arguments.describe else pretrain(arguments))


if __name__ == "__main__":
    sys.exit(main())
