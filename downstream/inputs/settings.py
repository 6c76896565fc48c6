"""What a probe reads, as commands are told: kinds of inputs, options of their sources, settings of layer states."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    kind.name: kind
    for kind in (
        InputKind("vectors", words=True, states=False),
        InputKind("both", words=True, states=True),
        InputKind("features", words=False, states=True),
        InputKind("model", words=False, states=True),
    )
}


@dataclass(frozen=True, kw_only=True)
class StateSettings:
    """How layer states are mixed, and what is done with the word vectors beside them."""

    state_layers: str = setting(
        "all", help="the layers that are mixed: all, top (the uppermost), or their numbers from 0, such as 0,2"
    )
    mix_rate: float = setting(
        1.0, help="learning rate of the scalar mix, as a multiple of that of all else", above=0, most=1_000_000
    )
    match_vectors: bool = setting(
        True, help="word vectors beside states are scaled to the states' root mean square over the training data"
    )


# All layers, unchanged, beside word vectors that match them.
AS_THEY_ARE = StateSettings()


def layer_rows(state_layers: str, names: Sequence[str]) -> list[int]:
    """The rows of the layers that `state_layers` (all, top, or numbers) chooses among the layers `names`.

    Names that are not the numbers of an encoder's layers count from 0. Raises `InputError` for a layer that is not
    there, and for what is no list of layers.
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
