"""Settings of a task's command: its inputs, its training and its reader."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from msgspec import Meta

from elmoc.errors import InputError

# Between the origins, and between the fingerprints, of several word vectors side by
# side.
SEPARATOR = " + "
# Of small presets: their few updates are not enough for a mix that learns at the rate
# of all else.
SMALL_MIX_RATE = 10.0


@dataclass(frozen=True)
class InputKind:
    """A kind of inputs: word vectors, layer states (of a feature file or of a model),
    or both side by side.
    """

    name: str
    words: bool
    states: bool


# By name; `features` are the states of a feature file, `model` those computed from a
# model directory.
INPUT_KINDS = {
    "vectors": InputKind("vectors", words=True, states=False),
    "both": InputKind("both", words=True, states=True),
    "features": InputKind("features", words=False, states=True),
    "model": InputKind("model", words=False, states=True),
}


@dataclass(frozen=True, kw_only=True)
class StateSettings:
    """How layer states are mixed, and what is done with the word vectors beside them."""

    state_layers: Annotated[
        str,
        Meta(
            description="the layers that are mixed: all, top (the uppermost), or "
            "their numbers from 0, such as 0,2"
        ),
    ] = "all"
    mix_rate: Annotated[
        float,
        Meta(
            gt=0,
            le=1_000_000,
            description="learning rate of the scalar mix, as a multiple of the "
            "other weights' rate",
        ),
    ] = 1.0
    match_vectors: Annotated[
        bool,
        Meta(
            description="word vectors beside states are scaled to the states' root "
            "mean square over the training data"
        ),
    ] = True


# All layers, unchanged, beside word vectors that match them.
AS_THEY_ARE = StateSettings()


def layer_rows(state_layers: str, names: Sequence[str]) -> list[int]:
    """The rows of the layers that `state_layers` (all, top, or numbers) chooses among
    the layers `names`.

    Names that are not the numbers of an encoder's layers count from 0. Raises
    `InputError` for a layer that is not there, and for text that is no list of layers.
    """
    if state_layers == "all":
        return list(range(len(names)))
    numbered = len(set(names)) == len(names) and all(name.isdecimal() for name in names)
    numbers = list(map(int, names)) if numbered else list(range(len(names)))
    if state_layers == "top":
        return [numbers.index(max(numbers))]
    chosen = [int(each) for each in re.findall(r"\d{1,4}", state_layers)]
    listed = ",".join(map(str, chosen)) == state_layers and chosen == sorted(
        set(chosen)
    )
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
    states.add_argument(
        "--features",
        type=Path,
        metavar="FILE.h5",
        help="feature file (`elmoc dump-features`)",
    )
    states.add_argument(
        "--model",
        type=Path,
        metavar="DIR",
        help="model or run directory, read without a feature file",
    )


# Larger numbers overflow in float32.
LARGE = 1e30
# The weights of a layer of more units would fill 40 GB.
MOST_UNITS = 100_000
Size = Annotated[int, Meta(ge=1, le=MOST_UNITS)]
# A probability of dropout.
Dropout = Annotated[float, Meta(ge=0, lt=1)]


@dataclass(frozen=True, kw_only=True)
class ReaderOptions:
    """Options of a task's reader; a task that has some adds fields, each with a
    default: `column` is `--column`.
    """


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(StateSettings):
    """Hyper-parameters that every task has; a task's own settings add to them."""

    learning_rate: Annotated[float, Meta(ge=0, le=LARGE, description="learning rate")]
    optimiser: Annotated[
        Literal["adam", "adadelta"], Meta(description="Adam, or Adadelta with ρ = 0.95")
    ] = "adam"
    halve_on_plateau: Annotated[
        bool,
        Meta(
            description="halve the learning rate after an epoch without a better "
            "dev score"
        ),
    ] = False
    decay: Annotated[
        float,
        Meta(
            ge=0,
            le=2,
            description="multiply the learning rate by this after every 100 updates",
        ),
    ] = 1.0
    gradient_norm: Annotated[
        float,
        Meta(
            ge=0, le=LARGE, description="largest global norm of the gradients (0: any)"
        ),
    ] = 0.0
    gradient_value: Annotated[
        float,
        Meta(
            ge=0, le=LARGE, description="largest absolute value in a gradient (0: any)"
        ),
    ] = 0.0
    standardise: Annotated[
        bool,
        Meta(
            description="centre word vectors and scale them to variance 1 over the "
            "training words"
        ),
    ] = True
    mix_l2: Annotated[
        float,
        Meta(
            ge=0,
            le=LARGE,
            description="L2 penalty on the scalar mix before its softmax",
        ),
    ] = 0.0
    batch_size: Annotated[int, Meta(ge=1, le=1_000_000, description="examples a batch")]
    epochs: Annotated[int, Meta(ge=1, le=1_000_000, description="most epochs")]
    patience: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="stop after this number of epochs without a better dev score",
        ),
    ]
    train_fraction: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="train on a random part of the data; a smaller part lies "
            "inside a larger one",
        ),
    ] = 1.0


AnyTraining = TypeVar("AnyTraining", bound=TrainingSettings)


def settings_of_inputs(settings: AnyTraining, kind: InputKind) -> AnyTraining:
    """The hyper-parameters of a probe on one kind of inputs: what does not concern it
    is as it is by default.

    So results of word vectors alone are the same whatever is done with layer states
    elsewhere.
    """
    if not kind.states:
        return replace(settings, **vars(AS_THEY_ARE) | {"match_vectors": False})
    return (
        settings
        if kind.words
        else replace(settings, match_vectors=AS_THEY_ARE.match_vectors)
    )
