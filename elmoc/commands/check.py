"""`elmoc check`: the command line that finds damaged files."""

import argparse

from elmoc.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc check`."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="corpus, run or model directory, or feature file (.h5)"
    )
    parser.add_argument("--vectors", help="where a model's word vectors are, if they have moved")


def run(arguments: argparse.Namespace) -> None:
    """Check what the parsed command line names; damage is an `InputError`."""
    from elmoc.checks import check

    damaged = [sentence for path in arguments.paths for sentence in check(path, vectors=arguments.vectors)]
    if len(damaged) == 1:
        raise InputError(damaged[0])
    if damaged:
        raise InputError(f"{len(damaged)} parts are damaged or missing, see above; the first: {damaged[0]}")
