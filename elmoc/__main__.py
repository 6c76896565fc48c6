"""The `elmoc` command: parses the command line and runs one of `elmoc.commands`."""

import argparse
import sys
from collections.abc import Sequence

from elmoc.commands import (
    check,
    convert,
    dump_features,
    export_elmo,
    import_elmo,
    inspect,
    neighbours,
    plot,
)
from elmoc.errors import run_command
from elmoc.process import wait_without_spinning
from elmoc.version import VERSION

COMMANDS = {
    "dump-features": dump_features,
    "inspect": inspect,
    "convert": convert,
    "import-elmo": import_elmo,
    "export-elmo": export_elmo,
    "neighbours": neighbours,
    "plot": plot,
    "check": check,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line, run the subcommand, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="elmoc",
        description="Use contextual word representations (ELMo-C).",
        epilog="elmoc COMMAND --help says more.",
    )
    parser.add_argument("--version", action="version", version=f"elmoc {VERSION}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        sentence = f"{command.SUMMARY[0].upper()}{command.SUMMARY[1:]}."
        subparser = subparsers.add_parser(name, help=command.SUMMARY, description=sentence)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    arguments = parser.parse_args(argv)
    wait_without_spinning()
    return run_command(lambda: arguments.run(arguments))


if __name__ == "__main__":
    sys.exit(main())
