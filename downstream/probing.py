"""The call `run_probe`: how well does a task model learn from frozen inputs?

`python -m downstream TASK` is its command.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from downstream.inputs.options import InputOptions
from downstream.printing import counted, say_lines
from downstream.probe.options import ProbeData, ProbeOptions
from downstream.probe.runs import score_probes
from downstream.probe.task import Task
from downstream.results.records import (
    LOCK_SECONDS,
    Result,
    append_result,
    read_results,
)
from downstream.tasks import TASKS, load_task
from elmoc.command_line import run_main
from elmoc.files.checksums import check_beside
from elmoc.files.compression import require_file
from elmoc.files.writing import locked
from elmoc.settings import checked


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """Scores of probes, in percent, by their kind of inputs (`vectors`, `both`, …).

    task: the name of the task.
    metric: the name of the metric, such as "entity F1".
    split: the part of the data that was scored: test, or dev without a test part.
    mean: kind of inputs → mean over seeds.
    lines: what is written of each kind to `ProbeOptions.out`, with the score of each
        seed.
    """

    task: str
    metric: str
    split: str
    mean: dict[str, float]
    lines: list[Result] = field(repr=False)

    def __str__(self) -> str:
        """A line for each kind of inputs, with its gain over word vectors alone."""
        shown = [f"{self.task}: {self.metric} on {self.split}"]
        baseline = self.mean.get("vectors")
        for each in self.lines:
            seeds = counted(len(each.seeds), "seed")
            line = f"  {each.inputs:9} {each.score:14}  {seeds:8}"
            if baseline is not None and each.inputs != "vectors":
                line += f"  gain {each.mean - baseline:+.2f}"
            shown.append(line.rstrip())
        return "\n".join(shown)


def run_probe(
    task: str | Task[Any, Any],
    data: ProbeData,
    inputs: InputOptions,
    options: ProbeOptions = ProbeOptions(),
) -> ProbeResult:
    """Train the probe of a task on frozen inputs, for each seed, and score it.

    Where both word vectors and an encoder are given, probes are trained on word vectors
    alone and on both side by side: the difference is what the encoder is worth. The
    models and their hyper-parameters are described in docs/probes.md.

    Args:
        task: a name, such as `"ner"`, or a task of your own.
        data: the files. The development part chooses the epoch; the test part is
            scored, or the development part where there is no other.
        inputs: word vectors, and a model or a feature file.
        options: of training and scoring. Files are written only where `out`, `save` or
            `predictions` names them. With `evaluate_only`, a saved probe is scored on
            the test part: the inputs are those of its training, and so are all options
            but where results go, the device, and options of the reader.

    Raises:
        InputError: an option, a file or a number in it that cannot be used, or other
            inputs than a saved probe was trained with.
    """
    known = load_task(task) if isinstance(task, str) else task
    options = checked(options)
    if options.out is not None:
        # That it cannot be written, is damaged or holds something else is told before
        # hours of training.
        with locked(options.out, seconds=LOCK_SECONDS):
            check_beside(options.out)
            if options.out.exists():
                require_file(options.out)
                if options.out.stat().st_size:
                    read_results([options.out])
    lines = []
    for line in score_probes(known, checked(data), checked(inputs), options):
        # It is written at once: a run that is stopped keeps the kinds that are done.
        if options.out is not None:
            append_result(options.out, line.as_json())
        lines.append(line)
    return ProbeResult(
        task=known.name,
        metric=known.metric,
        split=lines[0].split,
        mean={line.inputs: line.mean for line in lines},
        lines=lines,
    )


@dataclass(frozen=True, kw_only=True)
class ProbeCommand:
    """Options of `python -m downstream TASK`."""

    # The suite sends these options as JSON, by the names of the fields.

    task: Annotated[str, Meta(description="what is learned", extra={"metavar": "TASK"})]
    data: ProbeData = ProbeData()
    inputs: InputOptions = InputOptions()
    options: ProbeOptions = ProbeOptions()


def main(argv: Sequence[str]) -> int:
    """`python -m downstream TASK …`, or `--json -`."""
    # A task has options of its reader and hyper-parameters of its own. With `--json`
    # its name is not known yet: there they are dictionaries.
    inside = {}
    description = ""
    if argv[0] in TASKS:
        task = load_task(argv[0])
        inside = {"options.reader": task.reader, "options.settings": task.published}
        small_settings = [
            f"{name.replace('_', ' ')} {value}"
            for name, value in vars(task.small).items()
            if value != getattr(task.published, name)
        ]
        description = (
            f"Train the {task.name} probe on frozen inputs and report its "
            f"{task.metric}, mean and standard deviation over seeds. --small stands "
            f"for {', '.join(small_settings)}."
        )
    return run_main(
        ProbeCommand,
        run,
        argv,
        prog="python -m downstream",
        description=description,
        inside=inside,
    )


def run(command: ProbeCommand) -> None:
    """Train and score the probes, and print a summary."""
    result = run_probe(command.task, command.data, command.inputs, command.options)
    say_lines(str(result))
