"""The tasks: each is a folder whose `task.py` holds one `TASK`."""

from importlib import import_module
from typing import Any

from elmoc.errors import InputError

# Name → what it is, as the help of the command says it. Tables have the tasks in this
# order.
TASKS = {
    "snli": "natural language inference (pairs of sentences; accuracy)",
    "ner": "named entities (CoNLL columns; entity F1)",
    "sst5": "sentiment in five classes (trees or sentences; accuracy)",
    "imdb": "sentiment of whole reviews in two classes (accuracy)",
    "srl": "semantic role labelling (CoNLL-2012 columns; F1 as srl-eval counts)",
    "coref": "coreference (CoNLL-2012 columns or JSON; mean F1 of MUC, B³ and CEAFφ4)",
}


def load_task(name: str) -> Any:
    """The task of this name, a `downstream.probe.task.Task`; its module is imported."""
    if name not in TASKS:
        raise InputError(f"task must be one of {', '.join(TASKS)}, not {name!r}")
    return import_module(f"downstream.tasks.{name}.task").TASK
