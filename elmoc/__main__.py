"""The `elmoc` command: runs the module of `elmoc.commands` that is asked for."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from elmoc.version import VERSION

# What each subcommand does; `import-elmo` is in `elmoc.commands.import_elmo`.
COMMANDS = {
    "dump-features": "write the layer states of sentences to an HDF5 file",
    "inspect": "say what a feature file holds, and check it",
    "import-elmo": "make a model directory of original ELMo weights (bilm-tf, "
    "AllenNLP) or an ELMoForManyLangs model",
    "export-elmo": "write a model as original ELMo weights (bilm-tf, AllenNLP), where "
    "it is one",
    "neighbours": "list the uses of a word in a text that are nearest to a given one",
    "plot": "draw the uses of a word in a text in two dimensions (PNG, PDF or SVG)",
    "check": "read a corpus, run, model or feature file whole, and say what is damaged",
    "pack": "make one small model directory of a model and its word vectors",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the subcommand that the command line names, and return the exit status."""
    given = list(sys.argv[1:] if argv is None else argv)
    if not given or given[0] not in COMMANDS:
        _print_help(given)
        return 2
    name = given[0]
    summary = COMMANDS[name]
    # Imported here: the list of commands needs none of it, nor a command the others.
    from elmoc.command_line import run_main

    command = import_module(f"elmoc.commands.{name.replace('-', '_')}")
    return run_main(
        command.Options,
        command.run,
        given[1:],
        prog=f"elmoc {name}",
        description=f"{summary[0].upper()}{summary[1:]}.",
    )


def _print_help(given: Sequence[str]) -> None:
    """Print the list of subcommands, the version, or what is wrong, and exit."""
    parser = argparse.ArgumentParser(
        prog="elmoc",
        description="Use contextual word representations (ELMo-C).",
        epilog="elmoc COMMAND --help says more.",
    )
    parser.add_argument("--version", action="version", version=f"elmoc {VERSION}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        subparsers.add_parser(name, help=summary)
    parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main())
