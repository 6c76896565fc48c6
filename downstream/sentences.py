"""The command `python -m downstream sentences`: which sentences does a task read?

It prints the text that `elmoc dump-features` takes.
"""

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from downstream.probe.options import Values
from downstream.settings import with_changes
from downstream.tasks import TASKS, load_task
from elmoc.command_line import run_main


@dataclass(frozen=True, kw_only=True)
class SentencesCommand:
    """Options of `python -m downstream sentences`."""

    task: Annotated[
        str, Meta(description="whose reader reads them", extra={"metavar": "TASK"})
    ]
    files: Annotated[
        list[Path],
        Meta(description="plain or compressed", extra={"metavar": "FILE"}),
    ]
    reader: Annotated[Values, Meta(description="how the data is read")] = field(
        default_factory=dict
    )


def main(argv: Sequence[str]) -> int:
    """`python -m downstream sentences …`."""
    name = argv[0] if argv else ""
    return run_main(
        SentencesCommand,
        run,
        argv,
        prog="python -m downstream sentences",
        description="Print the distinct sentences of the files as they are read here, "
        "one a line: the text of `elmoc dump-features`, for all splits at once.",
        inside={"reader": load_task(name).reader} if name in TASKS else {},
    )


def run(command: SentencesCommand) -> None:
    """Print each distinct sentence once, in the order of the files."""
    task = load_task(command.task)
    reader = with_changes(task.reader, command.reader)
    examples = chain.from_iterable(
        task.read(path, reader, training=True) for path in command.files
    )
    sentences = chain.from_iterable(task.sentences(each) for each in examples)
    # Other programs read the lines, whatever characters the terminal shows.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="strict")
    for each in dict.fromkeys(" ".join(sentence.words) for sentence in sentences):
        print(each)
