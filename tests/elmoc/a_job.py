"""A command that `test_jobs` runs in a process of its own."""

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated

from elmoc.command_line import run_main
from elmoc.errors import InputError, say
from elmoc.process import progress_bar
from elmoc.settings import Meta


@dataclass(frozen=True)
class Inner:
    """Options inside options."""

    path: Path = Path()


@dataclass(frozen=True)
class JobOptions:
    """What the job does."""

    does: str = "end"
    count: Annotated[int, Meta(ge=1)] = 1
    words: tuple[str, ...] = ()
    inner: Inner = Inner()


def run(options: JobOptions) -> None:
    if options.does == "show":
        for _ in progress_bar(iterable=range(options.count), desc="counting", unit=" things"):
            time.sleep(0.02)
            say(f"line of {options.inner.path} {options.words}")
        say("a note", file=sys.stderr)
    elif options.does == "fail":
        raise InputError("nothing to do")
    elif options.does == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif options.does == "wait":
        save_when_asked(options.inner.path)


def save_when_asked(path: Path) -> None:
    """Wait to be interrupted, save for a while, and end as a training run does."""

    heard = []

    def asked(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"asked by {signal.Signals(number).name}\n")

    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, asked)
    say("runs")
    # The signal may come before `signal.pause` would wait for it.
    while not heard:
        time.sleep(0.01)
    time.sleep(0.5)
    with open(path, "a", encoding="utf-8") as file:
        file.write("saved\n")
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(run_main(JobOptions, run, None, prog="a job", description="Do something."))
