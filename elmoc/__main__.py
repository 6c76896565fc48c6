"""The `elmoc` command: lists all jobs, and runs the one that is asked for."""

import sys
from collections.abc import Sequence

from elmoc.command_line import chosen_command, import_command, run_main

# Commands of the other rooms, in the order in which people need them: their modules,
# which are imported where they are asked for, and what they do.
OF_ROOMS = {
    "make-model": ("pretrain.recipe.__main__", "make a model of text, in one step"),
    "tokenize": ("data_scripts.tokenize", "make tokenised sentences of raw text"),
    "build-corpus": ("data_scripts.build_corpus", "make a corpus of text"),
    "train-fasttext": ("data_scripts.train_fasttext", "train word vectors on a corpus"),
    "build-vectors": ("data_scripts.build_vectors", "look up vectors for a corpus"),
    "train": ("pretrain.__main__", "train an encoder on a corpus"),
    "probe": ("downstream.__main__", "measure what features are worth on a task"),
    "suite": ("downstream.suite.running", "measure it on many tasks"),
}
# What each command of this room does; `import-elmo` is in `commands/import_elmo.py`.
OWN = {
    "embed": "write one vector for each raw text (NumPy, Parquet or JSON lines)",
    "dump-features": "write the layer states of sentences to an HDF5 file",
    "inspect": "say what a feature file holds, and check it",
    "neighbours": "list the uses of a word in a text that are nearest to a given one",
    "plot": "draw the uses of a word in a text in two dimensions (a page or a picture)",
    "spacy-config": "write a config that trains a spaCy pipeline on a model's vectors",
    "pack": "make one small model directory of a model and its word vectors",
    "package": "make a Python package of a model, which is found by its name",
    "import-elmo": "make a model directory of original ELMo weights (bilm-tf, "
    "AllenNLP) or an ELMoForManyLangs model",
    "export-elmo": "write a model as original ELMo weights (bilm-tf, AllenNLP), where "
    "it is one",
    "check": "read a corpus, run, model or feature file whole, and say what is damaged",
}
COMMANDS = {name: summary for name, (_, summary) in OF_ROOMS.items()} | OWN


def main(argv: Sequence[str] | None = None) -> int:
    """Run the subcommand that the command line names, and return the exit status."""
    given = list(sys.argv[1:] if argv is None else argv)
    name = chosen_command(
        given,
        COMMANDS,
        prog="elmoc",
        description="Contextual word representations (ELMo-C): train a model on your "
        "text, and use it.",
    )
    if name in OF_ROOMS:
        return int(import_command(OF_ROOMS[name][0]).main(given[1:]))
    # Imported here: a command needs none of the others.
    command = import_command(f"elmoc.commands.{name.replace('-', '_')}")
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
