"""`elmoc neighbours`: the command line that lists the nearest uses of a word in
context.
"""

import argparse

from elmoc.errors import InputError, say, shortened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc neighbours`."""
    add_word_arguments(parser)
    parser.add_argument(
        "--in",
        dest="sentence",
        required=True,
        help="a tokenised sentence in which the word stands",
    )
    parser.add_argument(
        "--top",
        type=positive,
        default=10,
        metavar="N",
        help="uses to list (default: 10)",
    )


def add_word_arguments(parser: argparse.ArgumentParser) -> None:
    """What all commands need that look at the uses of a word."""
    parser.add_argument(
        "model", help="model directory, run directory, or name on a model hub"
    )
    parser.add_argument(
        "corpus", help="text of one tokenised sentence a line (.txt or .gz)"
    )
    parser.add_argument(
        "--word", required=True, help="the word, as it is written in the text"
    )
    parser.add_argument(
        "--ignore-case", action="store_true", help="find it in upper and lower case"
    )
    parser.add_argument(
        "--layer",
        default="average",
        help="average (the default), top, or a number from 0",
    )
    parser.add_argument(
        "--most",
        type=positive,
        default=1000,
        metavar="N",
        help="uses to read at most (default: 1000)",
    )
    parser.add_argument(
        "--vectors", help="where the model's word vectors are, if they have moved"
    )
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:N")


def positive(text: str) -> int:
    """A number from 1 on, as an option has it."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def run(arguments: argparse.Namespace) -> None:
    """List what the parsed command line asks for."""
    from elmoc.looking.uses import Use, find_uses, nearest_uses, positions
    from elmoc.model import ElmoC

    word = arguments.word
    ignore_case = arguments.ignore_case
    tokens = arguments.sentence.split()
    found = positions(tokens, word, ignore_case)
    if not found:
        raise InputError(f"--in does not have the token {shortened(word)!r}")
    query = Use(tuple(tokens), found[0])
    uses, count = find_uses(
        arguments.corpus, word, most=arguments.most, ignore_case=ignore_case
    )
    elmo = ElmoC.from_pretrained(
        arguments.model, vectors=arguments.vectors, device=arguments.device
    )
    nearest = nearest_uses(elmo, query, uses, top=arguments.top, layer=arguments.layer)
    say(
        f"{count:,} uses of {shortened(word)!r}, {len(uses):,} of them read; nearest to: {query.marked()}"
    )
    print("\ncosine      line  use")
    for use, cosine in nearest:
        say(f"{cosine:6.3f} {use.line:9,}  {use.marked()}")
