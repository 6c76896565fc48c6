"""Steps: commands of the project run one after the other; a step that was stopped goes
on where it was.

A step is a command in a process of its own, since rooms do not import each other. What
is finished is skipped. An interrupt (Ctrl-C) or a termination signal is passed on once
to the command that runs, which saves, and is waited for.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from elmoc.errors import InputError, duration
from elmoc.process import end_with_parent, interrupted_by_sigterm

ROOT = Path(__file__).resolve().parent.parent.parent
# the exit status of a command that was asked to stop
INTERRUPTED = 130


@dataclass(frozen=True)
class Step:
    """One step of a recipe.

    title: what it makes, in words.
    run: says which module is to be run with which arguments, or does the step here and
    gives None.
    output: the file that is there once it is done; without one, the step is run every
    time.
    """

    title: str
    run: Callable[[], Sequence[object] | None]
    output: Path | None = None


def run_steps(steps: Sequence[Step]) -> None:
    """Run the steps whose output is not there; `InputError` when one fails,
    `KeyboardInterrupt` when asked to stop.
    """
    started = time.monotonic()
    for number, step in enumerate(steps, 1):
        place = f"step {number} of {len(steps)}: {step.title}"
        if step.output is not None and step.output.exists():
            print(f"── {place}: done before", flush=True)
            continue
        print(
            f"\n── {place} ({duration(time.monotonic() - started)} so far)", flush=True
        )
        try:
            if (arguments := step.run()) is not None:
                run_module(arguments)
        except KeyboardInterrupt:
            print(
                f"stopped in step {number} of {len(steps)}: run the command that you gave again, and it goes on"
            )
            raise
    print(
        f"\n── all {len(steps)} steps are done ({duration(time.monotonic() - started)})",
        flush=True,
    )


def run_module(arguments: Sequence[object]) -> None:
    """Print and run `python -m ARGUMENTS` of this project, in the folder where we are.

    Raises `InputError` where the command fails, and `KeyboardInterrupt` where it was
    asked to stop.
    """
    words = list(map(str, arguments))
    print("$ python -m", shlex.join(words), flush=True)
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    status = run_child(
        [sys.executable, "-m", *words], environment=os.environ | {"PYTHONPATH": path}
    )
    if status:
        raise InputError(
            f"the command above ended with status {status}: what it printed says why; see to that, and run this again"
        )


def run_child(command: Sequence[str], *, environment: Mapping[str, str]) -> int:
    """Run a command in a process of its own, and return its exit status.

    It is interrupted where this process is interrupted or terminated, and waited for
    while it saves; then, or where it was interrupted itself, `KeyboardInterrupt` is
    raised.
    """
    process = subprocess.Popen(  # in a group of its own, so that a terminal's Ctrl-C reaches it once
        command,
        env=environment,
        process_group=0,
        preexec_fn=partial(end_with_parent, os.getpid()),
    )
    status = None
    asked = False
    with interrupted_by_sigterm():
        while status is None:
            try:
                status = process.wait()
            except KeyboardInterrupt:
                asked = True
                process.send_signal(signal.SIGINT)
    if asked or status == INTERRUPTED:
        raise KeyboardInterrupt
    return status
