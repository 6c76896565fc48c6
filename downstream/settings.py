"""Settings of a task's command: its inputs, its training and its reader."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from elmoc.errors import InputError
from elmoc.settings import setting

# Between the origins, and between the fingerprints, of several word vectors side by side.
SEPARATOR = " + "
# Of small presets: their few updates are not enough for a mix that learns at the rate of all else.
SMALL_MIX_RATE = 10.0


@dataclass(frozen=True)
class InputKind:
    """A kind of inputs: word vectors, layer states (of a feature file or of a model), or both side by side."""

    name: str
    words: bool
    states: bool


# By name; `features` are the states of a feature file, `model` those computed from a model directory.
INPUT_KINDS = {
    "vectors": InputKind("vectors", words=True, states=False),
    "both": InputKind("both", words=True, states=True),
    "features": InputKind("features", words=False, states=True),
    "model": InputKind("model", words=False, states=True),
}


@dataclass(frozen=True, kw_only=True)
class StateSettings:
    """How layer states are mixed, and what is done with the word vectors beside them."""

    state_layers: str = setting(
        "all", help="the layers that are mixed: all, top (the uppermost), or their numbers from 0, such as 0,2"
    )
    mix_rate: float = setting(
        1.0, help="learning rate of the scalar mix, as a multiple of the other weights' rate", above=0, most=1_000_000
    )
    match_vectors: bool = setting(
        True, help="word vectors beside states are scaled to the states' root mean square over the training data"
    )


# All layers, unchanged, beside word vectors that match them.
AS_THEY_ARE = StateSettings()


def layer_rows(state_layers: str, names: Sequence[str]) -> list[int]:
    """The rows of the layers that `state_layers` (all, top, or numbers) chooses among the layers `names`.

    Names that are not the numbers of an encoder's layers count from 0. Raises `InputError` for a layer that is not
    there, and for text that is no list of layers.
    """
    if state_layers == "all":
        return list(range(len(names)))
    numbered = len(set(names)) == len(names) and all(name.isdecimal() for name in names)
    numbers = list(map(int, names)) if numbered else list(range(len(names)))
    if state_layers == "top":
        return [numbers.index(max(numbers))]
    chosen = [int(each) for each in re.findall(r"\d{1,4}", state_layers)]
    listed = ",".join(map(str, chosen)) == state_layers and chosen == sorted(set(chosen))
    if not chosen or not listed or not {*chosen} <= {*numbers}:
        raise InputError(
            f"--state-layers {state_layers[:50]!r} must be all, top, or some of the layers "
            f"{','.join(map(str, sorted(numbers)))} in rising order"
        )
    return [numbers.index(number) for number in chosen]


def add_source_options(group: argparse._ActionsContainer) -> None:
    """Add what `open_sources` is told: `--vectors`, `--features` or `--model`."""
    group.add_argument(
        "--vectors",
        nargs="+",
        metavar="V",
        help="word vectors: FILE.bin, FILE.vec, FILE.txt, a model with a character CNN, or random:SEED:SIZE; several "
        "stand side by side",
    )
    states = group.add_mutually_exclusive_group()
    states.add_argument("--features", type=Path, metavar="FILE.h5", help="feature file (`elmoc dump-features`)")
    states.add_argument("--model", type=Path, metavar="DIR", help="model or run directory, read without a feature file")


# Larger numbers overflow in float32.
LARGE = 1e30
# The weights of a layer of more units would fill 40 GB.
MOST_UNITS = 100_000


@dataclass(frozen=True, kw_only=True)
class ReaderOptions:
    """Options of a task's reader; a task that has some adds fields, each with a default: `column` is `--column`."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(StateSettings):
    """Hyper-parameters that every task has; a task's own settings add to them."""

    learning_rate: float = setting(help="learning rate", least=0, most=LARGE)
    optimiser: str = setting("adam", help="Adam, or Adadelta with ρ = 0.95", choices=("adam", "adadelta"))
    halve_on_plateau: bool = setting(False, help="halve the learning rate after an epoch without a better dev score")
    decay: float = setting(1.0, help="multiply the learning rate by this after every 100 updates", least=0, most=2)
    gradient_norm: float = setting(0.0, help="largest global norm of the gradients (0: any)", least=0, most=LARGE)
    gradient_value: float = setting(0.0, help="largest absolute value in a gradient (0: any)", least=0, most=LARGE)
    standardise: bool = setting(True, help="centre word vectors and scale them to variance 1 over the training words")
    mix_l2: float = setting(0.0, help="L2 penalty on the scalar mix before its softmax", least=0, most=LARGE)
    batch_size: int = setting(help="examples a batch", least=1, most=1_000_000)
    epochs: int = setting(help="most epochs", least=1, most=1_000_000)
    patience: int = setting(help="stop after this number of epochs without a better dev score", least=1, most=1_000_000)
    train_fraction: float = setting(
        1.0, help="train on a random part of the data; a smaller part lies inside a larger one", above=0, most=1
    )


AnyTraining = TypeVar("AnyTraining", bound=TrainingSettings)


def settings_of_inputs(settings: AnyTraining, kind: InputKind) -> AnyTraining:
    """The hyper-parameters of a probe on one kind of inputs: what does not concern it is as it is by default.

    So results of word vectors alone are the same whatever is done with layer states elsewhere.
    """
    if not kind.states:
        return replace(settings, **vars(AS_THEY_ARE) | {"match_vectors": False})
    return settings if kind.words else replace(settings, match_vectors=AS_THEY_ARE.match_vectors)


def size_setting(default: int, help: str, *, most: int = MOST_UNITS) -> Any:
    """A field for a whole number from 1 to `most`."""
    return setting(default, help=help, least=1, most=most)


def dropout_setting(default: float, help: str) -> Any:
    """A field for a probability of dropout."""
    return setting(default, help=help, least=0, below=1)
