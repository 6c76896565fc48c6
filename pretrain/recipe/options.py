"""Options that the commands of recipes and adaptations share, and a first look at the text and settings they give."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from elmoc.errors import InputError
from elmoc.text.named_files import find_files, find_named_files
from elmoc.text.raw import sample_lines

FIRST_CHARACTERS = 10_000
"""Of each file of text, which are read before anything is made."""


def add_options(parser: argparse.ArgumentParser, *, text: str) -> None:
    """Add the text, the run directory and what is said of the training; `text` is what help calls the text."""
    parser.add_argument(
        "text", nargs="+", help="tokenised text: files, .gz files, folders, quoted globs; NAME=PATH names its kind"
    )
    parser.add_argument("output", type=Path, help="the run directory to make")
    parser.add_argument(
        "--held-out",
        nargs="+",
        default=[],
        metavar="FILE",
        help=f"{text} to be evaluated on alone; of kinds that it has none of, a part of the text",
    )
    parser.add_argument(
        "--leave-out",
        nargs="+",
        default=[],
        metavar="FILE",
        help="tokenised text whose sentences must not be read in training, such as the parts of tasks that you report "
        "scores on",
    )
    parser.add_argument("--max-time", metavar="TIME", help="fit the training into this time, e.g. 20m, 3h")
    parser.add_argument("--licence", default="", metavar="TEXT", help=f"of the {text}, for the model card")
    parser.add_argument("--name", default="", metavar="TEXT", help="of the model, for the model card")
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="override a setting of training"
    )


def shared_values(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the command line gives for the options of `add_options`, by the names that plans have for them."""
    return {
        "texts": tuple(arguments.text),
        "output": arguments.output,
        "held_out": tuple(arguments.held_out),
        "leave_out": tuple(arguments.leave_out),
        "max_time": arguments.max_time,
        "card": {"name": arguments.name, "licence": arguments.licence},
        "sets": tuple(arguments.set),
    }


def key_of(override: str) -> str:
    """The key of `section.key=value`."""
    return override.partition("=")[0].strip()


def require_no_corpus(sets: Iterable[str], why: str) -> None:
    """Raise an `InputError` where `--set` names a corpus: the command has one of its own, as `why` says."""
    if "data.corpus" in map(key_of, sets):
        raise InputError(f"--set data.corpus: {why}: leave it out")


def require_text(arguments: argparse.Namespace, corpus: Path) -> None:
    """Raise an `InputError` where text is missing, or its beginning cannot be read, unless its `corpus` is built.

    The steps that read all of it may come after hours of others.
    """
    if not (corpus / "corpus.json").exists():
        for files in (*map(find_named_files, (arguments.text, arguments.held_out)), find_files(arguments.leave_out)):
            for file in files:
                sample_lines(file, FIRST_CHARACTERS)
