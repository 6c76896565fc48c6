"""`elmoc convert`: the command line that writes a feature file again in another layout."""

import argparse
import sys

from elmoc.commands.dump_features import DTYPES
from elmoc.errors import say
from elmoc.features import LAYOUT_NAMES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc convert`."""
    parser.add_argument("source", help="the feature file to read (.h5), in any layout")
    parser.add_argument("output", help="the feature file to write (.h5)")
    parser.add_argument(
        "--format", choices=LAYOUT_NAMES, required=True, help="layout of the new file"
    )
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        help="type of its numbers (default: as in the source)",
    )
    parser.add_argument(
        "--compress", action="store_true", help="pack the numbers with gzip"
    )
    parser.add_argument(
        "--layers",
        metavar="I,J",
        help="only these layers, in this order, as inspect names them",
    )


def run(arguments: argparse.Namespace) -> None:
    """Convert as the parsed command line says."""
    from elmoc.features.convert import convert_features

    have_words = convert_features(
        arguments.source,
        arguments.output,
        layout=arguments.format,
        dtype=arguments.dtype,
        compress=arguments.compress,
        layers=arguments.layers,
        command_line=" ".join(["elmoc", *sys.argv[1:]]),
    )
    if not have_words:
        say(
            f"sentences of {arguments.output} cannot be found by their words: {arguments.source} lacks these"
        )
