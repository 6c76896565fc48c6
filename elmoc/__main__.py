"""The `elmoc` command: which subcommand does what? (Nothing heavy is imported before a subcommand runs.)"""

import argparse
import sys
from collections.abc import Sequence

from elmoc.errors import run_command
from elmoc.process import wait_without_spinning
from elmoc.version import VERSION


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line, run the subcommand, and return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="elmoc",
        description="Use contextual word representations (ELMo-C).",
        epilog="elmoc COMMAND --help says more.",
    )
    parser.add_argument("--version", action="version", version=f"elmoc {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    dump_parser = commands.add_parser("dump-features", help="write the layer states of sentences to an HDF5 file")
    if "dump-features" in arguments:
        wait_without_spinning()
        from elmoc.features import dump

        dump.add_arguments(dump_parser)
    parsed = parser.parse_args(arguments)

    def command() -> None:
        dump.run(parsed)

    return run_command(command)


if __name__ == "__main__":
    sys.exit(main())
