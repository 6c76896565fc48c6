"""`elmoc pack`: the command line that makes one small model directory of a model and
its fastText file.
"""

import argparse
import re

from elmoc.errors import InputError, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc pack`."""
    parser.add_argument(
        "model", help="model directory, run directory, or name on a model hub"
    )
    parser.add_argument("output", metavar="OUT", help="the model directory to write")
    parser.add_argument(
        "--size",
        required=True,
        help="the most that its files take together, such as 50MB",
    )
    parser.add_argument(
        "--text",
        help="compare it on this text of one tokenised sentence a line (.txt or .gz)",
    )
    parser.add_argument(
        "--weights",
        choices=("int8", "float16"),
        default="int8",
        help="type of the encoder's matrices (default: int8)",
    )
    parser.add_argument(
        "--vectors", help="where the model's word vectors are, if they have moved"
    )


def run(arguments: argparse.Namespace) -> None:
    """Pack the model that the parsed command line names."""
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]+)?)MB", arguments.size)
    if match is None:
        raise InputError(
            f"--size takes a number of megabytes, such as 50MB; not {arguments.size!r}"
        )
    from elmoc.files.writing import locked, refuse_existing
    from elmoc.model import ElmoC
    from elmoc.packing import pack

    with locked(arguments.output):
        refuse_existing(arguments.output)
        elmo = ElmoC.from_pretrained(arguments.model, vectors=arguments.vectors)
        packed = pack(
            elmo,
            int(float(match[1]) * 10**6),
            weight_type=arguments.weights,
            text=arguments.text,
        )
        packed.save_pretrained(arguments.output)
    say(
        f"{arguments.output}: fingerprint {packed.fingerprint}, word vectors {packed.word_vectors.fingerprint}"
    )
