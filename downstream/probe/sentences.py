"""Sentences of a task's files: the text of which `elmoc dump-features` makes features."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from downstream.probe.settings import add_options, chosen
from downstream.probe.task import Task


def print_sentences(task: Task[Any, Any], arguments: Sequence[str]) -> None:
    """`python -m downstream sentences TASK FILES…`: each distinct sentence once, in the order of the files."""
    parser = argparse.ArgumentParser(
        prog=f"python -m downstream sentences {task.name}",
        description="Print the sentences of the files as the probe reads them, each distinct one once, one a line, "
        "words joined by a space: the text of which `elmoc dump-features` makes features, for all splits at once.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    add_options(parser, task.reader)
    parsed = parser.parse_args(arguments)
    options = chosen(parsed, task.reader)
    printed: set[tuple[str, ...]] = set()
    for path in parsed.files:
        for example in task.read(path, options, training=True):
            for sentence in task.sentences(example):
                if sentence.words not in printed:
                    printed.add(sentence.words)
                    print(" ".join(sentence.words))
