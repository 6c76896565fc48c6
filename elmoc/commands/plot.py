"""`elmoc plot`: the command line that draws the uses of a word in two dimensions."""

import argparse
from pathlib import Path

from elmoc.commands.neighbours import add_word_arguments
from elmoc.errors import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc plot`."""
    add_word_arguments(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the .png, .pdf or .svg to write (default: WORD.png)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Draw what the parsed command line asks for."""
    from elmoc.files.writing import locked
    from elmoc.looking.figures import figure_format
    from elmoc.looking.picture import draw_uses
    from elmoc.looking.uses import find_uses
    from elmoc.model import ElmoC

    word = arguments.word
    output = arguments.output or f"{word}.png"
    figure_format(output)  # a wrong one is told before words are read
    with locked(output):
        uses, count = find_uses(
            arguments.corpus,
            word,
            most=arguments.most,
            ignore_case=arguments.ignore_case,
        )
        elmo = ElmoC.from_pretrained(
            arguments.model, vectors=arguments.vectors, device=arguments.device
        )
        title = f"{word!r}: {len(uses):,} of {count:,} uses in {Path(arguments.corpus).name}, layer {arguments.layer}"
        draw_uses(elmo, uses, output, title=title, layer=arguments.layer)
    say(f"{output}: {len(uses):,} of {count:,} uses")
