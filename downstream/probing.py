"""The call `run_probe`: how well does a task model learn from frozen inputs?

`python -m downstream TASK` is its command.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from downstream.inputs.options import InputOptions
from downstream.printing import say_lines
from downstream.probe.options import ProbeData, ProbeOptions
from downstream.probe.runs import score_probes, train_probes
from downstream.probe.task import Task
from downstream.results.line import ResultLine
from downstream.results.records import append_result, summary
from downstream.settings import TrainingSettings
from downstream.tasks import TASKS, load_task
from elmoc.command_line import run_main
from elmoc.errors import InputError
from elmoc.settings import checked, option_name


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """Scores of probes, in percent, by their kind of inputs (`vectors`, `both`, …).

    task: the name of the task.
    metric: the name of the metric, such as "entity F1".
    split: the part of the data that was scored: test, or dev without a test part.
    mean: kind of inputs → mean over seeds.
    deviation: kind of inputs → sample standard deviation over seeds (n − 1); None for
        a single seed.
    by_seed: kind of inputs → seed → score.
    settings: kind of inputs → hyper-parameters.
    lines: all that is known of each kind, as `ProbeOptions.out` gets it.
    """

    task: str
    metric: str
    split: str
    mean: dict[str, float]
    deviation: dict[str, float | None]
    by_seed: dict[str, dict[int, float]]
    settings: dict[str, dict[str, Any]] = field(repr=False)
    lines: list[dict[str, Any]] = field(repr=False)


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
            `predictions` names them.

    Raises:
        InputError: an option, a file or a number in it that cannot be used.
    """
    found = load_task(task) if isinstance(task, str) else task
    options = checked(options, option_name)
    lines = train_probes(found, checked(data), checked(inputs), options)
    return _result(lines, options)


def score_saved(
    task: str | Task[Any, Any],
    probes: Sequence[Path],
    data: ProbeData,
    inputs: InputOptions,
    options: ProbeOptions = ProbeOptions(),
) -> ProbeResult:
    """Score probes that `run_probe` has saved on other data.

    Args:
        task: as of `run_probe`.
        probes: directories, such as `DIR/both.seed1` of `ProbeOptions.save`.
        data: its test part is scored.
        inputs: the same word vectors and encoder as in the training.
        options: the training is over, so that hyper-parameters, seeds and kinds of
            inputs are not given again.

    Raises:
        InputError: a probe of another task, or other inputs than in the training.
    """
    found = load_task(task) if isinstance(task, str) else task
    options = checked(options, option_name)
    # Device, reader, predictions and results can be others than in the training.
    free = {"device", "reader", "predictions", "out"}
    usual = vars(ProbeOptions())
    given = [name for name in usual if getattr(options, name) != usual[name]]
    of_training = [name for name in given if name not in free]
    if of_training or data.train or data.dev or not data.test:
        raise InputError(
            "--evaluate-only PROBE goes with --test FILES, not with --train, --dev, or "
            "options of training"
        )
    lines = score_probes(found, probes, checked(data), checked(inputs), options)
    return _result(lines, options)


def _result(lines: Iterable[ResultLine], options: ProbeOptions) -> ProbeResult:
    """Gather lines of results, and append each to the file as soon as it is there."""
    mean: dict[str, float] = {}
    deviation: dict[str, float | None] = {}
    by_seed: dict[str, dict[int, float]] = {}
    settings: dict[str, dict[str, Any]] = {}
    records = []
    for line in lines:
        record = line.as_json()
        # A run that is stopped later has the kinds of inputs that were finished.
        if options.out is not None:
            append_result(options.out, record)
        records.append(record)
        mean[line.inputs] = record["mean"]
        deviation[line.inputs] = record["deviation"]
        by_seed[line.inputs] = dict(zip(line.seeds, line.scores, strict=True))
        settings[line.inputs] = line.settings
    return ProbeResult(
        task=records[0]["task"],
        metric=records[0]["metric"],
        split=records[0]["split"],
        mean=mean,
        deviation=deviation,
        by_seed=by_seed,
        settings=settings,
        lines=records,
    )


@dataclass(frozen=True, kw_only=True)
class ProbeCommand:
    """Options of `python -m downstream TASK`."""

    # The suite sends them as JSON: names of fields are part of what its jobs are told.

    task: Annotated[str, Meta(description="what is learned", extra={"metavar": "TASK"})]
    data: ProbeData = ProbeData()
    inputs: InputOptions = InputOptions()
    options: ProbeOptions = ProbeOptions()
    evaluate_only: Annotated[
        list[Path],
        Meta(
            description="score saved probes (DIR/KIND.seedN) on --test",
            extra={"metavar": "PROBE", "rare": True},
        ),
    ] = field(default_factory=list)


def main(argv: Sequence[str]) -> int:
    """`python -m downstream TASK …`, or `--json -`."""
    # Which reader and which hyper-parameters there are, the task says. With `--json`
    # its name is read later, and they come as dictionaries.
    inside = {}
    description = ""
    if argv[0] in TASKS:
        task = load_task(argv[0])
        inside = {"options.reader": task.reader, "options.settings": task.published}
        description = (
            f"Train the {task.name} probe on frozen inputs and report its "
            f"{task.metric}, mean and standard deviation over seeds. --small stands "
            "for "
            f"{_differences(task.published, task.small)}."
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
    """Train or score probes, and print their scores."""
    data = command.data
    inputs = command.inputs
    options = command.options
    if command.evaluate_only:
        probes = command.evaluate_only
        result = score_saved(command.task, probes, data, inputs, options)
    else:
        result = run_probe(command.task, data, inputs, options)
    say_lines(summary(result.lines))


def _differences(published: TrainingSettings, small: TrainingSettings) -> str:
    """The hyper-parameters that the small preset changes."""
    changed = [
        f"{name.replace('_', ' ')} {value}"
        for name, value in vars(small).items()
        if value != getattr(published, name)
    ]
    return ", ".join(changed)
