"""Steps: commands of the project run one after the other, each of which goes on with what it left half done.

A step is a command in a process of its own, since rooms do not import each other. What is finished is skipped. An
interrupt (Ctrl-C) or a termination signal is passed on once to the command that runs, which saves, and is waited for.
"""

import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmoc.errors import InputError
from elmoc.process import run_child
from elmoc.settings import duration, parse_duration
from pretrain.run.directory import RunDirectory

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Step:
    """One step of a recipe.

    title: what it makes, in words.
    run: says which module is to be run with which arguments, or does the step here and gives None.
    finished: the file that is there once it is done; without one, the step is run every time.
    seconds: how long it takes, where that is known before.
    """

    title: str
    run: Callable[[], Sequence[object] | None]
    finished: Path | None = None
    seconds: float | None = None


def run_steps(steps: Sequence[Step]) -> None:
    """Run the steps that are not finished; raises `InputError` when one fails, `KeyboardInterrupt` when asked to."""
    started = time.monotonic()
    for number, step in enumerate(steps, 1):
        place = f"── step {number} of {len(steps)}: {step.title}"
        if step.finished is not None and step.finished.exists():
            print(f"{place}: done before", flush=True)
            continue
        known = [each.seconds for each in steps[number - 1 :] if each.seconds is not None]
        to_come = f", {duration(sum(known))} of training to come" if known else ""
        print(f"\n{place} ({duration(time.monotonic() - started)} so far{to_come})", flush=True)
        try:
            arguments = step.run()
            if arguments is not None:
                run_module(arguments)
        except KeyboardInterrupt:
            print(f"stopped in step {number} of {len(steps)}: run the command that you gave again, and it goes on")
            raise
    print(f"\nall {len(steps)} steps are done ({duration(time.monotonic() - started)})", flush=True)


def run_module(arguments: Sequence[object]) -> None:
    """Print and run `python -m ARGUMENTS` of this project, in the folder where we are.

    Raises `InputError` where the command fails, and `KeyboardInterrupt` where it was asked to stop.
    """
    words = list(map(str, arguments))
    print(f"$ {shlex.join(['python', '-m', *words])}", flush=True)
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    status = run_child([sys.executable, "-m", *words], environment=os.environ | {"PYTHONPATH": path})
    if status:
        raise InputError(
            f"the command above ended with status {status}: what it printed says why; see to that, and run this again"
        )


def training_command(
    config: str | Path, output: Path, sets: Sequence[str], max_time: str | None, *, anew: Sequence[object] = ()
) -> Sequence[object]:
    """The training of a run directory; it is gone on with if it was begun, and begun with the options `anew` if not."""
    words = [word for each in sets for word in ("--set", each)]
    begun = ["--resume"] if RunDirectory(output).config.exists() else list(anew)
    return ["pretrain", config, output, *words, *begun, *([] if max_time is None else ["--max-time", max_time])]


def corpus_command(
    texts: Sequence[str], corpus: Path, *, held_out: Sequence[str], leave_out: Sequence[str]
) -> Sequence[object]:
    """The building of a corpus; of sources without text in `held_out`, a part is held out."""
    more = ["--held-out", *held_out, "--of-every-source"] if held_out else []
    more += ["--leave-out", *leave_out] if leave_out else []
    return ["data_scripts.build_corpus", *texts, corpus, *more]


def seconds_of_training(output: Path, max_time: str | None) -> float | None:
    """How long the training of a run directory takes; None once it was begun, since it says itself what is left."""
    return None if max_time is None or RunDirectory(output).config.exists() else parse_duration(max_time)
