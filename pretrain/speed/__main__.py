"""Command line of the benchmark: `python -m pretrain.speed`."""

import argparse
import json
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

from elmoc.errors import InputError, run_command
from elmoc.process import keep_freed_memory, wait_without_spinning
from pretrain import CONFIGS

if TYPE_CHECKING:
    from pretrain.distributed.processes import Processes

PAPER_SIZE = CONFIGS / "elmo_c.toml"
DIRECTIONS = {1: ["forward"], 2: ["forward", "backward"]}
OPTIONS = "the command line"
CONTESTANTS = ("allennlp", "plain", "fused-fp32", "fused-bf16")


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pretrain.speed", description="Measure how fast training runs here, and how fast it could."
    )
    parser.add_argument("--config", default=PAPER_SIZE, help="a TOML file with the sizes (default: the paper's)")
    parser.add_argument("--streams", type=int, nargs="+", default=[128], metavar="B", help="streams, a table for each")
    parser.add_argument(
        "--contestants",
        nargs="+",
        default=CONTESTANTS,
        metavar="NAME",
        help="allennlp, plain, fused-fp32, fused-bf16 (the default), plain-bf16, allennlp-bf16, and, on a GPU, "
        "fused-fp32-graph, fused-bf16-graph",
    )
    parser.add_argument("--updates", type=int, default=5, help="timed updates of each contestant (default: 5)")
    parser.add_argument("--warm-up", type=int, default=2, help="untimed updates before (default: 2)")
    parser.add_argument("--directions", type=int, choices=DIRECTIONS, default=2, help="1: forward alone, 2: both")
    parser.add_argument("--device", help="cpu, cuda, cuda:N or auto (default: the config's)")
    parser.add_argument("--threads", type=int, help="of a CPU (default: the config's, or as many as PyTorch takes)")
    parser.add_argument("--corpus", metavar="DIR", help="a corpus with vector tables (default: a synthetic one)")
    table = parser.add_argument_group("tables of the paper (Li et al. 2019, Section 5.2)")
    table.add_argument(
        "--table",
        type=int,
        choices=(4, 5),
        help="instead, output layers by vocabularies (4) or by encoders (5), with several processes by torchrun",
    )
    table.add_argument("--sizes", choices=("paper", "small"), help="(default: paper on a GPU, small on a CPU)")
    table.add_argument("--memory", metavar="SIZE", help="of a batch (default: 12GB, or 6GB with the small sizes)")
    table.add_argument(
        "--only",
        default="",
        metavar="NAME,…",
        help="these output layers and encoders of the table, such as SUBWORD,ADAPTIVE:800K,GPT (default: all)",
    )
    table.add_argument("--most-streams", type=int, default=1024, metavar="B", help="of a batch (default: 1024)")
    parser.add_argument("--json", metavar="OUT.json", help="write everything measured to this file, too")
    return parser


def speed(arguments: argparse.Namespace) -> None:
    """Measure, and print, what the parsed command line asks for."""
    from elmoc.files.locks import locked
    from elmoc.files.records import write_json
    from elmoc.files.writing import refuse_existing
    from pretrain.distributed.processes import Processes
    from pretrain.distributed.rendezvous import connect

    for name in ("streams", "updates", "warm_up"):
        least = min(arguments.streams) if name == "streams" else getattr(arguments, name)
        if least < 1:
            raise InputError(f"--{name.replace('_', '-')} must be at least 1, not {least}")
    if arguments.table is not None:
        refuse_options_of_contestants(arguments)
    for name in ("only", "sizes", "memory", "most_streams"):
        if arguments.table is None and getattr(arguments, name) != parser().get_default(name):
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} is for a table of the paper: give --table 4 or 5, too, or leave it out")
    with ExitStack() as stack:
        processes = stack.enter_context(connect()) if arguments.table is not None else Processes()
        writes = arguments.json is not None and processes.is_rank0
        if writes:
            stack.enter_context(locked(arguments.json))
            refuse_existing(arguments.json)
        reports = contestants_reports(arguments) if arguments.table is None else table_reports(arguments, processes)
        for report, text in stack.enter_context(closing(reports)):
            if text:
                print(text, flush=True)
            if writes:
                write_json(arguments.json, report)


def refuse_options_of_contestants(arguments: argparse.Namespace) -> None:
    """Raise an `InputError` for an option that a table of the paper does not know."""
    for name in ("config", "corpus", "streams", "directions", "contestants"):
        if getattr(arguments, name) != parser().get_default(name):
            raise InputError(f"--{name} is not for --table, whose rows say what they are: leave it out")


def contestants_reports(arguments: argparse.Namespace) -> Generator[tuple[dict[str, Any], str]]:
    """The reports of the benchmark, and what is printed of each."""
    from pretrain.config import load_config
    from pretrain.speed.benchmark import benchmark
    from pretrain.speed.contestants import WAYS
    from pretrain.speed.table import heading, last_comparison

    if unknown := [name for name in arguments.contestants if name not in WAYS]:
        raise InputError(f"{unknown[0]!r} is not a contestant: choose from {', '.join(WAYS)}")
    settings = {"data.corpus": arguments.corpus or "", "train.directions": DIRECTIONS[arguments.directions]}
    given = {"train.device": arguments.device, "train.threads": arguments.threads}
    settings |= {key: value for key, value in given.items() if value is not None}
    overrides = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    reports = benchmark(
        load_config(arguments.config, overrides, option=OPTIONS),
        streams=arguments.streams,
        contestants=list(dict.fromkeys(arguments.contestants)),
        updates=arguments.updates,
        warm_up=arguments.warm_up,
    )
    with closing(reports):
        for report in reports:
            yield report, last_comparison(report) if report["comparisons"] else heading(report)


def table_reports(arguments: argparse.Namespace, processes: "Processes") -> Generator[tuple[dict[str, Any], str]]:
    """The report on a table of the paper, after each of its rows, and at the end what is printed of it."""
    import torch

    from pretrain.speed.paper_tables import TableOptions, paper_table, parse_bytes, text_of

    on_gpu = torch.cuda.is_available() and arguments.device != "cpu"
    size = arguments.sizes or ("paper" if on_gpu else "small")
    options = TableOptions(
        size=size,
        memory=parse_bytes(arguments.memory or ("12GB" if size == "paper" else "6GB")),
        most_streams=arguments.most_streams,
        updates=arguments.updates,
        warm_up=arguments.warm_up,
        only=tuple(filter(None, map(str.strip, arguments.only.split(",")))),
        device=arguments.device,
        threads=arguments.threads,
    )
    report: dict[str, Any] = {}
    for report in paper_table(arguments.table, options, processes):
        yield report, ""
    yield report, text_of(report)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    wait_without_spinning()
    keep_freed_memory()
    return run_command(lambda: speed(arguments))


if __name__ == "__main__":
    sys.exit(main())
