"""Steps: the jobs of a recipe, one after the other; a step that was stopped goes on
where it was.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmoc.errors import say


@dataclass(frozen=True)
class Step:
    """One step of a recipe.

    title: what it makes, in words.
    run: does it.
    output: the file that is there once it is done; without one, the step is run every
        time.
    """

    title: str
    run: Callable[[], Any]
    output: Path | None = None


def run_steps(steps: Sequence[Step]) -> Any:
    """Run the steps whose output is not there; returns the result of the last one.

    Raises:
        InputError: a step failed.
        KeyboardInterrupt: a step was asked to stop, and has saved.
    """
    result = None
    for number, step in enumerate(steps, 1):
        place = f"step {number} of {len(steps)}"
        # Commands write their output whole or not at all: what is there is finished.
        if step.output is not None and step.output.exists():
            say(f"── {place}: {step.title}: done before")
            continue
        say("")
        say(f"── {place}: {step.title}")
        try:
            result = step.run()
        except KeyboardInterrupt:
            say(f"stopped in {place}: give the same command again, and it goes on")
            raise
    say(f"── all {len(steps)} steps are done")
    return result
