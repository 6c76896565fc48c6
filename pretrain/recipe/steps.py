"""Steps: the jobs of a recipe, one after the other; a step that was stopped goes on
where it was.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmoc.errors import duration, say


@dataclass(frozen=True)
class Step:
    """One step of a recipe.

    title: what it makes, in words.
    run: does it.
    output: the file that is there once it is done; without one, the step is run every
        time.
    """

    title: str
    run: Callable[[], object]
    output: Path | None = None


def run_steps(steps: Sequence[Step]) -> None:
    """Run the steps whose output is not there.

    Raises:
        InputError: a step failed.
        KeyboardInterrupt: a step was asked to stop, and has saved.
    """
    started = time.monotonic()
    for number, step in enumerate(steps, 1):
        place = f"step {number} of {len(steps)}"
        # Commands write their output whole or not at all: what is there is finished.
        if step.output is not None and step.output.exists():
            say(f"── {place}: {step.title}: done before")
            continue
        seconds = time.monotonic() - started
        say("")
        say(f"── {place}: {step.title} ({duration(seconds)} so far)")
        try:
            step.run()
        except KeyboardInterrupt:
            say(f"stopped in {place}: give the same command again, and it goes on")
            raise
    say("")
    seconds = time.monotonic() - started
    say(f"── all {len(steps)} steps are done ({duration(seconds)})")
