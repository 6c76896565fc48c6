"""Command line of the benchmark of using a model: `python -m elmoc.benchmark`."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from elmoc.errors import run_command
from elmoc.process import wait_without_spinning

PARTS = {
    "dumping": "words a second from sentences to layer states",
    "writing": "feature files of each layout",
    "reading": "feature files at random and in order, in one process and in four",
    "opening": "word vectors of fastText's size, opened and looked up",
}


def benchmark(parts: Sequence[str], quick: bool) -> None:
    """Print what each part measures."""
    for part in parts:
        print(f"\n{part}: {PARTS[part]}", flush=True)
        for what, figure in import_module(f"elmoc.benchmark.{part}").rows(quick):
            print(f"  {what:<72} {figure}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line, measure, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m elmoc.benchmark", description="Measure how fast a model is used.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes: a minute instead of a quarter of an hour")
    arguments = parser.parse_args(argv)
    if unknown := [part for part in arguments.parts if part not in PARTS]:
        parser.error(f"{unknown[0]!r} is not a part: choose from {', '.join(PARTS)}")
    wait_without_spinning()
    return run_command(lambda: benchmark(arguments.parts or list(PARTS), arguments.quick))


if __name__ == "__main__":
    sys.exit(main())
