"""`elmoc import-elmo`: the command line that makes a model directory of an original
ELMo or an ELMoForManyLangs.
"""

import argparse
import os

from elmoc.errors import InputError, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc import-elmo`."""
    parser.usage = "%(prog)s [-h] OPTIONS.json WEIGHTS.hdf5 MODEL\n       %(prog)s [-h] DIRECTORY MODEL"
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="options.json and weights.hdf5 of bilm-tf or AllenNLP, or a directory with these or "
        "with an ELMoForManyLangs model; and the model directory to write",
    )


def run(arguments: argparse.Namespace) -> None:
    """Import what the parsed command line names."""
    *sources, output = arguments.paths
    if len(sources) not in (1, 2) or (len(sources) == 1 and os.path.isfile(sources[0])):
        raise InputError(
            "import-elmo takes OPTIONS.json WEIGHTS.hdf5 MODEL, or the DIRECTORY of these or of an ELMoForManyLangs "
            f"model and MODEL, not {' '.join(arguments.paths)}"
        )
    from elmoc.files.writing import locked, refuse_existing

    with locked(output):
        refuse_existing(output)
        from elmoc.interop.many_langs import read_many_langs
        from elmoc.interop.original_elmo import find_original_elmo, read_original_elmo

        files = sources if len(sources) == 2 else find_original_elmo(sources[0])
        model = read_original_elmo(*files) if files else read_many_langs(*sources)
        model.write(output)
    say(
        f"{output}: {model.sizes.description}, forward and backward, with its character CNN as word vectors"
    )
