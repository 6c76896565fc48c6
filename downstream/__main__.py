"""The `downstream` command: probes by task, the sentences of a task, linear
classifiers, and the table.

python -m downstream TASK --train F… --dev F [--test F] [--features F.h5] [--vectors V]
train and score a probe python -m downstream sentences TASK|columns FILES…    print the
sentences, as `elmoc dump-features` takes them python -m downstream suite SUITE.toml
--model RUN    run many probes, and give the encoder's worth in one number python -m
downstream layers --train F… --dev F --label pos --model RUN    what a linear classifier
finds in each layer python -m downstream similarity VECTORS|MODEL FILES…    do cosines
of words rank pairs of them as people do? python -m downstream table RESULTS…    gather
the results of many runs into one table
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

from elmoc.errors import run_command
from elmoc.process import keep_freed_memory, wait_without_spinning

# each task is a folder of `tasks`, whose `task.py` holds one `TASK`
TASKS = {
    "snli": "natural language inference (jsonl or tab-separated pairs; accuracy)",
    "ner": "named entities (CoNLL columns; entity F1)",
    "sst5": "sentiment in five classes (PTB-style trees; accuracy)",
    "imdb": "sentiment of whole reviews in two classes (jsonl; accuracy)",
    "srl": "semantic role labelling (CoNLL-2012 columns; F1 as srl-eval counts)",
    "coref": "coreference (CoNLL-2012 columns; mean F1 of MUC, B³ and CEAFφ4)",
}
COMMANDS = {
    "sentences": "print the sentences of files, the input of `elmoc dump-features`",
    "suite": "run a suite of probes for one encoder, and give its worth in one number",
    "layers": "what a linear classifier finds in each layer",
    "similarity": "correlate cosines of words with human judgements of their similarity",
    "table": "gather the results of many runs into one table, with gains and how sure they are",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m downstream` with `arguments` (by default the process's); returns
    the exit status.
    """
    return run_command(
        lambda: _dispatch(list(sys.argv[1:] if arguments is None else arguments))
    )


def _dispatch(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m downstream",
        description="Train and score a probe: what are frozen features worth on a task?",
        epilog="\n".join(
            f"{name:10} {what}" for name, what in (TASKS | COMMANDS).items()
        )
        + "\n\nEach command has a --help of its own.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=[*TASKS, *COMMANDS])
    command = parser.parse_args(arguments[:1]).command
    rest = arguments[1:]
    wait_without_spinning()
    tasks = {name: partial(_task, name) for name in TASKS}
    if command == "sentences":
        parser = argparse.ArgumentParser(
            prog="python -m downstream sentences",
            description="Print the sentences of a task's files, one a line.",
        )
        text = "whose reader reads them; columns: any file of columns, as `layers` reads it"
        parser.add_argument("task", choices=[*TASKS, "columns"], help=text)
        name = parser.parse_args(rest[:1]).task
        import_module("downstream.probe.cli").print_sentences(
            _task(name) if name in TASKS else None, rest[1:]
        )
    elif command == "suite":
        import_module("downstream.suite.cli").run_suite(rest, tasks)
    elif command == "table":
        import_module("downstream.results.table").print_table(rest, tasks)
    elif command == "similarity":
        import_module("downstream.similarity").run_similarity(rest)
    elif command == "layers":
        keep_freed_memory()
        import_module("downstream.layers").run_layers(rest)
    else:
        keep_freed_memory()
        import_module("downstream.probe.cli").run_probes(_task(command), rest)


def _task(name: str) -> Any:
    return import_module(f"downstream.tasks.{name}.task").TASK


if __name__ == "__main__":
    sys.exit(main())
