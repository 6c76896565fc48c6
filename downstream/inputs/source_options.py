"""Options of the sources of inputs: word vectors, and layer states of a feature file or of a model."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from elmoc.encoders.pooling import POOLINGS
from elmoc.errors import InputError

MODEL_OPTIONS = ("model_vectors", "pooling")
"""How `ElmoC.from_pretrained` reads a model."""
MEMORY_LIMIT = 4.0
"""GB of the features of a model that are kept by default."""


def add_source_options(group: argparse._ArgumentGroup) -> None:
    """Add `--vectors`, `--features` or `--model`, and how a model is read: what `open_sources` is told."""
    group.add_argument(
        "--vectors",
        nargs="+",
        metavar="V",
        help="word vectors: FILE.bin, FILE.vec, FILE.txt, a model with a character CNN, or random:SEED:SIZE; several "
        "stand side by side",
    )
    states = group.add_mutually_exclusive_group()
    states.add_argument("--features", type=Path, metavar="FILE.h5", help="feature file (`elmoc dump-features`)")
    states.add_argument(
        "--model",
        type=Path,
        metavar="DIR",
        help="model or run directory: its features are computed here, without a file",
    )
    add_model_options(group)
    group.add_argument(
        "--memory-limit",
        type=float,
        metavar="GB",
        help="how much of the features of --model is kept; the rest is computed again and again "
        f"(default: {MEMORY_LIMIT:g}; inf: all)",
    )


def add_model_options(group: argparse._ActionsContainer) -> None:
    """Add those of `MODEL_OPTIONS`."""
    group.add_argument("--model-vectors", metavar="V", help="the model's word vectors, if they have moved")
    group.add_argument(
        "--pooling",
        choices=POOLINGS,
        help="of a model that reads subwords, which of a word's states are its features: those of its first subword "
        "(default), of its last, or the mean of all",
    )


def require_model(options: argparse.Namespace, names: Sequence[str] = MODEL_OPTIONS) -> None:
    """Raise an `InputError` where one of these options is given, but no `--model`."""
    for name in names:
        if getattr(options, name) is not None and not options.model:
            option = f"--{name.replace('_', '-')}"
            raise InputError(
                f"{option} says how --model DIR is read, which is not given: give it, or leave {option} out"
            )


def check_source_options(options: argparse.Namespace) -> None:
    """Fill in the default of `--memory-limit`; raises `InputError` for options that do not go together."""
    require_model(options, [*MODEL_OPTIONS, "memory_limit"])
    if options.memory_limit is None:
        options.memory_limit = MEMORY_LIMIT
    if not options.memory_limit >= 0:  # nan, too
        raise InputError(f"--memory-limit {options.memory_limit} is not possible: a number of GB from 0 is needed")
