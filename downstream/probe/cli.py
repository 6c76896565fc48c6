"""Command lines of a task: the options of its probes, which of them go together, and
the printing of its sentences.
"""

import argparse
import io
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from downstream.inputs.options import INPUT_KINDS, InputKind, InputOptions
from downstream.inputs.sentence import TaskSentence
from downstream.printing import say
from downstream.probe.runs import score_probes, train_probes
from downstream.probe.task import Task
from downstream.readers.columns import read_columns
from downstream.results.records import append_result, summary
from elmoc.command_line import add_options, chosen, given_values
from elmoc.errors import InputError
from elmoc.settings import option_name

SEEDS = "3"
MOST_SEEDS = 10_000


def run_probes(task: Task[Any, Any], arguments: Sequence[str]) -> None:
    """`python -m downstream TASK …`: train or score probes, and append a line of
    results for each kind of inputs.
    """
    options = parse(task, arguments)
    for folder in (
        options.save,
        options.predictions,
        options.results and options.results.parent,
    ):
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
    if options.results:
        open(
            options.results, "a"
        ).close()  # an impossible path is found before training
    lines = []
    for line in (score_probes if options.evaluate_only else train_probes)(
        task, options
    ):
        lines.append(line)
        if options.results:
            append_result(options.results, line)
    say(summary(lines))


def parse(task: Task[Any, Any], arguments: Sequence[str]) -> argparse.Namespace:
    """The options of `python -m downstream TASK`, checked.

    `settings`, `reader`, `kinds` (`InputKind`s) and `seed_list` are worked out; the
    last two are empty where saved probes are scored.
    """
    parser = _parser(task, full="--help-all" in arguments)
    options = parser.parse_args(arguments)
    options.settings = chosen(options, task.small if options.small else task.published)
    options.reader = chosen(options, task.reader)
    options.kinds = []
    options.seed_list = []
    if options.evaluate_only:
        given = [
            name
            for name in ("train", "dev", "save", "inputs", "seeds")
            if getattr(options, name) is not None
        ]
        given += ["small"] * options.small
        given += [
            name for name in vars(task.published) if name in given_values(options)
        ]
        if given or not options.test:
            others = "".join(f", not with {option_name(name)}" for name in given)
            parser.error(f"--evaluate-only PROBE goes with --test FILES{others}")
    elif options.train and options.dev:
        options.kinds, options.seed_list = (
            _kinds(options),
            _seeds(options.seeds or SEEDS),
        )
    else:
        parser.error(
            "give --train FILES and --dev FILES (or --evaluate-only PROBE and --test FILES)"
        )
    return options


def _parser(task: Task[Any, Any], *, full: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m downstream {task.name}",
        description=f"Train the {task.name} probe on frozen inputs and report its {task.metric}, mean and standard "
        "deviation over seeds.",
    )
    path: dict[str, Any] = {"type": Path, "metavar": "FILE"}
    folder: dict[str, Any] = {"type": Path, "metavar": "DIR"}
    add = parser.add_argument
    add(
        "--help-all",
        action="help",
        help="all options: saved probes, predictions, inputs, hyper-parameters",
    )
    add("--train", nargs="+", **path, help="training data, plain or .gz")
    add("--dev", nargs="+", **path, help="chooses the best epoch")
    add("--test", nargs="+", **path, help="is reported; without it, dev is")
    add_options(parser, type(task.reader), defaults=task.reader)
    add_options(parser, InputOptions)
    kinds = ", ".join(INPUT_KINDS)
    add(
        "--inputs",
        metavar="KIND,…",
        help=f"one run each: {kinds} (default: vectors,both where both are given)",
    )
    preset = [
        (name, value)
        for name, value in vars(task.small).items()
        if value != getattr(task.published, name)
    ]
    changed = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in preset)
    add("--small", action="store_true", help=f"a preset for a CPU: {changed}")
    add("--seeds", metavar="N|A-B", help=f"seeds 1 … N, or A … B (default: {SEEDS})")
    add("--results", **path, help="append a line of JSON for each kind of inputs")
    add(
        "--name",
        help="what the data is called in results (default: the folder of the reported file)",
    )
    add("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    add(
        "--save",
        **folder,
        help="keep each trained probe in DIR/KIND.seedN, and train none that is there",
    )
    add(
        "--evaluate-only",
        nargs="+",
        type=Path,
        metavar="PROBE",
        help="score saved probes (DIR/KIND.seedN) on --test",
    )
    add("--predictions", **folder, help=f"write predictions to DIR/…{task.suffix}")
    add_options(parser, type(task.published), defaults=task.published)
    hidden = {
        *vars(task.published),
        "inputs",
        "name",
        "device",
        "save",
        "evaluate_only",
        "predictions",
        "word_column",
    }
    for action in parser._actions:
        if not full and action.dest in hidden:
            action.help = argparse.SUPPRESS
    return parser


def _seeds(text: str) -> list[int]:
    match = re.fullmatch(r"(?:(\d{1,9})-)?(\d{1,9})", text)
    first, last = (int(match[1] or 1), int(match[2])) if match else (1, 0)
    if not 1 <= first <= last < first + MOST_SEEDS:
        raise InputError(
            f"--seeds {text[:50]!r} must be a number or a range, as 3 or 2-5, of {MOST_SEEDS} at most"
        )
    return list(range(first, last + 1))


def _kinds(options: argparse.Namespace) -> list[InputKind]:
    given = [
        name for name in ("vectors", "features", "model") if getattr(options, name)
    ]
    usual = ["vectors", "both"] if len(given) > 1 else given
    names = list(dict.fromkeys(options.inputs.split(","))) if options.inputs else usual
    if not names or not {*names} <= {*INPUT_KINDS}:
        raise InputError(
            f"--inputs must be some of {', '.join(INPUT_KINDS)}; give --features or --model, and --vectors"
        )
    return [INPUT_KINDS[name] for name in names]


def print_sentences(task: Task[Any, Any] | None, arguments: Sequence[str]) -> None:
    """`python -m downstream sentences …`: each distinct sentence once, in the order of
    the files.

    task  whose reader reads them; None for any file of columns
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m downstream sentences {task.name if task else 'columns'}",
        description="Print the distinct sentences of the files as they are read here, one a line: the text that "
        "`elmoc dump-features` takes, for all splits at once.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    if task:
        add_options(parser, type(task.reader), defaults=task.reader)
    else:
        parser.add_argument(
            "--word-column",
            type=int,
            metavar="N",
            help="column of the words (default: is found)",
        )
    options = parser.parse_args(arguments)
    if isinstance(
        sys.stdout, io.TextIOWrapper
    ):  # data for other programs, whatever the terminal shows
        sys.stdout.reconfigure(encoding="utf-8", errors="strict")
    sentences: Iterator[TaskSentence]
    if task:
        reader = chosen(options, task.reader)
        examples = (
            example
            for path in options.files
            for example in task.read(path, reader, training=True)
        )
        sentences = (
            sentence for example in examples for sentence in task.sentences(example)
        )
    else:
        files = (
            read_columns(path, word_column=options.word_column, ragged=True)
            for path in options.files
        )
        sentences = (
            each.sentence(file.word_column) for file in files for each in file.sentences
        )
    write = say if sys.stdout.isatty() else print
    for words in dict.fromkeys(sentence.words for sentence in sentences):
        write(" ".join(words))
