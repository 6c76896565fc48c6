"""`elmoc pack`: the command line that makes one small model directory of a model and its fastText file."""

import argparse
import re

from elmoc.errors import InputError, say

_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc pack`."""
    parser.add_argument("model", help="model directory, run directory, or name on a model hub")
    parser.add_argument("output", metavar="OUT", help="the model directory to write")
    parser.add_argument("--size", required=True, help="of all its files at most, such as 50MB")
    parser.add_argument("--text", help="compare it on this text of one tokenised sentence a line (.txt or .gz)")
    parser.add_argument(
        "--weights", choices=("int8", "float16"), default="int8", help="of the encoder's matrices (default: int8)"
    )
    parser.add_argument("--vectors", help="where the model's word vectors are, if they have moved")


def run(arguments: argparse.Namespace) -> None:
    """Pack the model that the parsed command line names."""
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]+)?)(KB|MB|GB)", arguments.size)
    if match is None:
        raise InputError(f"--size takes a number and one of KB, MB, GB, such as 50MB; not {arguments.size!r}")
    from elmoc.files.writing import locked, refuse_existing
    from elmoc.model import ElmoC
    from elmoc.packing import pack

    with locked(arguments.output):
        refuse_existing(arguments.output)
        elmo = ElmoC.from_pretrained(arguments.model, vectors=arguments.vectors)
        size = int(float(match[1]) * _UNITS[match[2]])
        packed = pack(elmo, size, weight_type=arguments.weights, text=arguments.text)
        packed.save_pretrained(arguments.output)
    say(f"{arguments.output}: fingerprint {packed.fingerprint}, word vectors {packed.word_vectors.fingerprint}")
