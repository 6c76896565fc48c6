"""The `elmoc` command: runs the module of `elmoc.commands` that is asked for."""

import sys
from collections.abc import Sequence
from importlib import import_module

from elmoc.command_line import chosen_command, run_main

# What each subcommand does; `import-elmo` is in `elmoc.commands.import_elmo`.
COMMANDS = {
    "dump-features": "write the layer states of sentences to an HDF5 file",
    "embed": "write one vector for each raw text (NumPy, Parquet or JSON lines)",
    "inspect": "say what a feature file holds, and check it",
    "import-elmo": "make a model directory of original ELMo weights (bilm-tf, "
    "AllenNLP) or an ELMoForManyLangs model",
    "export-elmo": "write a model as original ELMo weights (bilm-tf, AllenNLP), where "
    "it is one",
    "neighbours": "list the uses of a word in a text that are nearest to a given one",
    "plot": "draw the uses of a word in a text in two dimensions (PNG, PDF or SVG)",
    "spacy-config": "write a config that trains a spaCy pipeline on a model's vectors",
    "check": "read a corpus, run, model or feature file whole, and say what is damaged",
    "pack": "make one small model directory of a model and its word vectors",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the subcommand that the command line names, and return the exit status."""
    given = list(sys.argv[1:] if argv is None else argv)
    name = chosen_command(
        given,
        COMMANDS,
        prog="elmoc",
        description="Use contextual word representations (ELMo-C).",
    )
    # Imported here: a command needs none of the others.
    command = import_module(f"elmoc.commands.{name.replace('-', '_')}")
    summary = COMMANDS[name]
    return run_main(
        command.Options,
        command.run,
        given[1:],
        prog=f"elmoc {name}",
        description=f"{summary[0].upper()}{summary[1:]}.",
    )


if __name__ == "__main__":
    sys.exit(main())
