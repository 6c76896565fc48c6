"""The `downstream` command: probes by task, the sentences of a task, and the table.

python -m downstream TASK --train F… --dev F [--test F] [--model DIR] [--vectors V]
    train and score a probe
python -m downstream sentences TASK FILES…
    print the sentences, as `elmoc dump-features` takes them
python -m downstream suite SUITE.toml --model RUN
    run many probes, and give the encoder's worth in one number
python -m downstream table RESULTS…
    gather the results of many runs into one table
"""

import sys
from collections.abc import Sequence

from downstream.tasks import TASKS
from elmoc.command_line import chosen_command, import_command
from elmoc.process import keep_freed_memory, wait_without_spinning

# Name → its module, and what it does.
COMMANDS = {
    "sentences": (
        "downstream.sentences",
        "print the sentences of files, the input of `elmoc dump-features`",
    ),
    "suite": (
        "downstream.suite.running",
        "run a suite of probes for one encoder, and give its worth in one number",
    ),
    "table": (
        "downstream.results.table",
        "gather the results of many runs into one table, with gains and how sure they "
        "are",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m downstream`, and return its exit status.

    Args:
        arguments: by default those of this process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    module = "downstream.probing"
    # Commands import PyTorch, which reads then how its threads are to wait.
    wait_without_spinning()
    if given != ["--json", "-"]:
        summaries = {name: summary for name, (_, summary) in COMMANDS.items()}
        name = chosen_command(
            given,
            TASKS | summaries,
            prog="python -m downstream",
            description="Train and score a probe: the worth of frozen features on a "
            "task.",
        )
        if name in COMMANDS:
            module = COMMANDS[name][0]
            del given[0]
    # To be called before the command starts other threads.
    keep_freed_memory()
    return int(import_command(module).main(given))


if __name__ == "__main__":
    sys.exit(main())
