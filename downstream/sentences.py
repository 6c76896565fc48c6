"""The command `python -m downstream sentences`: which sentences does a task read?

It prints the text that `elmoc dump-features` takes.
"""

import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from downstream.inputs.sentence import TaskSentence
from downstream.probe.options import Values
from downstream.readers.columns import read_columns
from downstream.settings import ReaderOptions, with_changes
from downstream.tasks import TASKS, load_task
from elmoc.command_line import run_main
from elmoc.errors import printable

# In place of a task: any file of columns.
COLUMNS = "columns"


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(ReaderOptions):
    """Where words are in a file of columns."""

    word_column: Annotated[
        int | None,
        Meta(description="column of the words, from 0 (default: is found)"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SentencesCommand:
    """Options of `python -m downstream sentences`."""

    task: Annotated[
        str,
        Meta(
            description="whose reader reads them; columns: any file of columns, as "
            "`layers` reads it",
            extra={"metavar": "TASK|columns"},
        ),
    ]
    files: Annotated[
        list[Path],
        Meta(description="plain or .gz", extra={"metavar": "FILE"}),
    ]
    reader: Annotated[Values, Meta(description="how the data is read")] = field(
        default_factory=dict
    )


def main(argv: Sequence[str]) -> int:
    """`python -m downstream sentences …`."""
    name = argv[0] if argv else ""
    inside = {}
    if name == COLUMNS:
        inside = {"reader": ColumnOptions()}
    elif name in TASKS:
        inside = {"reader": load_task(name).reader}
    return run_main(
        SentencesCommand,
        run,
        argv,
        prog="python -m downstream sentences",
        description="Print the distinct sentences of the files as they are read here, "
        "one a line: the text of `elmoc dump-features`, for all splits at once.",
        inside=inside,
    )


def run(command: SentencesCommand) -> None:
    """Print each distinct sentence once, in the order of the files."""
    # A terminal gets no characters that steer it; a file gets the words as they are.
    is_terminal = sys.stdout.isatty()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Other programs read the lines, whatever characters the terminal shows.
        sys.stdout.reconfigure(encoding="utf-8", errors="strict")
    words = dict.fromkeys(sentence.words for sentence in _sentences(command))
    for each in words:
        line = " ".join(each)
        print(printable(line) if is_terminal else line)


def _sentences(command: SentencesCommand) -> Iterator[TaskSentence]:
    if command.task == COLUMNS:
        columns = with_changes(ColumnOptions(), command.reader)
        for path in command.files:
            file = read_columns(path, word_column=columns.word_column, ragged=True)
            for each in file.sentences:
                yield each.sentence(file.word_column)
        return
    task = load_task(command.task)
    reader = with_changes(task.reader, command.reader)
    for path in command.files:
        for example in task.read(path, reader, training=True):
            yield from task.sentences(example)
