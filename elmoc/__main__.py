"""The `elmoc` command: parses the command line and runs one of `elmoc.commands`."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from elmoc.errors import run_command
from elmoc.process import wait_without_spinning
from elmoc.version import VERSION

# what each subcommand does; `import-elmo` is in `elmoc.commands.import_elmo`, imported
# where it is asked for
COMMANDS = {
    "dump-features": "write the layer states of sentences to an HDF5 file",
    "inspect": "say what a feature file holds, and check it",
    "convert": "write a feature file again in another layout or type, or with fewer layers",
    "import-elmo": "make a model directory of original ELMo weights (bilm-tf, AllenNLP) or an ELMoForManyLangs model",
    "export-elmo": "write a model as original ELMo weights (bilm-tf, AllenNLP), where it is one",
    "neighbours": "list the uses of a word in a text that are nearest to a given one",
    "plot": "draw the uses of a word in a text in two dimensions (PNG, PDF or SVG)",
    "check": "read a corpus, run, model or feature file whole, and say what is damaged",
    "pack": "make one small model directory of a model and its fastText file",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line, run the subcommand, and return the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="elmoc",
        description="Use contextual word representations (ELMo-C).",
        epilog="elmoc COMMAND --help says more.",
    )
    parser.add_argument("--version", action="version", version=f"elmoc {VERSION}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        if name in argv:
            command = import_module(f"elmoc.commands.{name.replace('-', '_')}")
            command.add_arguments(subparser)
            subparser.set_defaults(run=command.run)
    arguments = parser.parse_args(argv)
    wait_without_spinning()
    return run_command(lambda: arguments.run(arguments))


if __name__ == "__main__":
    sys.exit(main())
