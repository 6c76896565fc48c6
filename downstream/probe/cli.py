"""Command lines of a task: the options of its probes, which of them go together, and the printing of its sentences."""

import argparse
import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from downstream.inputs.kinds import INPUT_KINDS, InputKind, refuse_unread
from downstream.inputs.source_options import add_source_options, check_source_options
from downstream.inputs.state_settings import numbers_of_layers
from downstream.probe.experiment import run_experiment
from downstream.probe.settings import CommandSettings, add_options, chosen, given_values, option_name
from downstream.probe.task import Task
from elmoc.errors import InputError

SEEDS, MOST_SEEDS = "3", 10_000
"""Default seeds; most seeds of a command, as more are a mistake."""


def run_probes(task: Task[Any, Any], arguments: Sequence[str]) -> None:
    """`python -m downstream TASK …`: train or score probes of the task."""
    run_experiment(task, parse(task, arguments))


def parse(task: Task[Any, Any], arguments: Sequence[str]) -> argparse.Namespace:
    """The options of `python -m downstream TASK`, checked.

    `settings`, `reader`, `kinds` (`InputKind`s) and `seed_list` are worked out; the last two are empty where saved
    probes are scored.
    """
    parser = _parser(task)
    options = parser.parse_args(arguments)
    if options.evaluate_only:
        if not options.test:
            parser.error("--evaluate-only PROBE goes with --test FILES")
        _refuse_training_options(options, task)
    elif not options.train or not options.dev:
        parser.error("give --train FILES and --dev FILES (or --evaluate-only PROBE and --test FILES)")
    options.settings = chosen(options, task.small if options.small else task.published)
    numbers_of_layers(options.settings.state_layers)  # which layers there are is known later
    options.reader = chosen(options, task.reader)
    options.seed_list = [] if options.evaluate_only else _seeds(SEEDS if options.seeds is None else options.seeds)
    options.kinds = [] if options.evaluate_only else _kinds(options)
    check_source_options(options)
    return options


def _parser(task: Task[Any, Any]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m downstream {task.name}",
        description=f"Train the {task.name} probe on frozen inputs and report its {task.metric}, mean and standard "
        "deviation over seeds.",
    )
    group = parser.add_argument_group("data", "plain files or .gz")
    group.add_argument("--train", nargs="+", type=Path, metavar="FILE", help="what the probe is trained on")
    group.add_argument("--dev", nargs="+", type=Path, metavar="FILE", help="chooses the best epoch")
    group.add_argument("--test", nargs="+", type=Path, metavar="FILE", help="is reported; without it, dev is")
    group.add_argument("--name", help="what the data is called in results (default: the folder of the reported file)")
    _add_input_options(parser.add_argument_group("inputs"))
    parser.add_argument("--seeds", metavar="N|A-B", help=f"seeds 1 … N, or A … B (default: {SEEDS})")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    parser.add_argument("--results", type=Path, metavar="FILE.jsonl", help="append a line for each kind of inputs")
    parser.add_argument("--predictions", type=Path, metavar="DIR", help=f"write predictions to DIR/…{task.suffix}")
    parser.add_argument(
        "--save",
        type=Path,
        metavar="DIR",
        help="keep each trained probe in DIR/KIND.seedN; a run that was stopped goes on after the seeds that are there",
    )
    parser.add_argument(
        "--evaluate-only",
        nargs="+",
        type=Path,
        metavar="PROBE",
        help="train nothing: score saved probes (DIR/KIND.seedN) on --test",
    )
    add_options(parser, task.reader)
    group = parser.add_argument_group("hyper-parameters", "by default those published for ELMo")
    changed = [
        f"{name.replace('_', ' ')} {value}"
        for name, value in vars(task.small).items()
        if value != getattr(task.published, name)
    ]
    group.add_argument("--small", action="store_true", help=f"a preset for a CPU: {', '.join(changed)}")
    add_options(group, task.published)
    return parser


def _add_input_options(group: argparse._ArgumentGroup) -> None:
    add_source_options(group)
    group.add_argument(
        "--inputs",
        metavar="KIND,…",
        help=f"what the probe reads, one run each: {', '.join(INPUT_KINDS)}; features are those of --features, model "
        "those of --model, and `both` is word vectors with either (default: vectors,both where both are given)",
    )


def _seeds(text: str) -> list[int]:
    match = re.fullmatch(r"(?:(\d{1,19})-)?(\d{1,19})", text)
    first, last = (int(match[1] or 1), int(match[2])) if match else (1, 0)
    if not 1 <= first <= last < min(2**63, first + MOST_SEEDS):
        raise InputError(
            f"--seeds {text} is not possible: give their number, such as 3, or the first and last, as 2-5; at most "
            f"{MOST_SEEDS:,} of them, each under 2^63"
        )
    return list(range(first, last + 1))


def _refuse_training_options(options: argparse.Namespace, task: Task[Any, Any]) -> None:
    names = ("train", "dev", "save", "inputs", "seeds")
    given = [f"--{name}" for name in names if getattr(options, name) is not None]
    given += ["--small"] * options.small + _given_options(options, task.published)
    if given:
        raise InputError(
            f"--evaluate-only scores probes as they were trained, and does not go with {', '.join(given)}: leave "
            f"{'them' if len(given) > 1 else 'it'} out"
        )


def _kinds(options: argparse.Namespace) -> list[InputKind]:
    given = {"vectors": options.vectors, "features": options.features, "model": options.model}
    if options.inputs is not None:
        names = options.inputs.split(",")
    elif options.vectors and (options.features or options.model):
        names = ["vectors", "both"]
    else:
        names = [name for name in given if given[name]]
    if not names:
        raise InputError("the probe has nothing to read: give --features FILE.h5 or --model DIR, --vectors V, or both")
    for name in names:
        if name not in INPUT_KINDS:
            raise InputError(f"--inputs: {name!r} is not a kind of inputs; choose from {', '.join(INPUT_KINDS)}")
        other = {"features": "model", "model": "features"}.get(name)
        if other and given[other]:
            renamed = dict.fromkeys(other if one == name else one for one in names)
            raise InputError(
                f"--inputs {name} needs --{name}: with --{other} that kind is called {other}, so give --inputs "
                f"{','.join(renamed)}"
            )
        INPUT_KINDS[name].require_sources(f"--inputs {name}", options)
    kinds = [INPUT_KINDS[name] for name in dict.fromkeys(names)]
    refuse_unread(options, kinds, f"--inputs {options.inputs}")
    return kinds


def print_sentences(task: Task[Any, Any], arguments: Sequence[str]) -> None:
    """`python -m downstream sentences TASK FILES…`: each distinct sentence once, in the order of the files."""
    parser = argparse.ArgumentParser(
        prog=f"python -m downstream sentences {task.name}",
        description="Print the sentences of the files as the probe reads them, each distinct one once, one a line, "
        "words joined by a space, in UTF-8: the text of which `elmoc dump-features` makes features, for all splits at "
        "once.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    add_options(parser, task.reader)
    parsed = parser.parse_args(arguments)
    options = chosen(parsed, task.reader)
    if isinstance(sys.stdout, io.TextIOWrapper):  # data for other programs, whatever the terminal shows
        sys.stdout.reconfigure(encoding="utf-8", errors="strict")
    printed: set[tuple[str, ...]] = set()
    for path in parsed.files:
        for example in task.read(path, options, training=True):
            for sentence in task.sentences(example):
                if sentence.words not in printed:
                    printed.add(sentence.words)
                    print(" ".join(sentence.words))


def _given_options(options: argparse.Namespace, settings: CommandSettings) -> list[str]:
    """The options of these settings that the command line gives, as they are written there."""
    return [
        option_name(f"no-{name}" if value is False else name) for name, value in given_values(options, settings).items()
    ]
