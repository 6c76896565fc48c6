"""`elmoc export-elmo`: the command line that writes a model as bilm-tf's and AllenNLP's
files.
"""

import argparse

from elmoc.errors import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc export-elmo`."""
    parser.add_argument("model", help="model directory, or run directory")
    parser.add_argument("options", help="the options to write (.json)")
    parser.add_argument("weights", help="the weights to write (.hdf5)")


def run(arguments: argparse.Namespace) -> None:
    """Export as the parsed command line says."""
    from elmoc.interop.original_elmo import export_original_elmo

    export_original_elmo(arguments.model, arguments.options, arguments.weights)
    say(
        f"{arguments.options}, {arguments.weights}: the model as bilm-tf and AllenNLP read it"
    )
