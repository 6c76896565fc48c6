"""Settings of layer states: how those of an encoder are given to a probe, which its scalar mix reads."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from elmoc.errors import InputError, shortened
from elmoc.settings import setting

SMALL_MIX_RATE = 10.0
"""Of small presets: in their few updates, a mix that learns at the rate of all else does not get where it would."""
_LAYERS = re.compile(r"\d{1,4}(,\d{1,4})*")


@dataclass(frozen=True, kw_only=True)
class StateSettings:
    """What is done with layer states before and after they are mixed, and beside them."""

    state_layers: str = setting(
        "all", help="the layers that are mixed: all, top (the uppermost), or their numbers from 0, such as 0,2"
    )
    normalise_states: bool = setting(
        False,
        help="scale the states of each word, layer by layer, to mean 0 and variance 1 before they are mixed (layer "
        "normalisation without weights)",
    )
    mix_rate: float = setting(
        1.0, help="the scalar mix learns at so many times the learning rate of all else", above=0, most=1_000_000
    )
    states_dropout: float = setting(0.0, help="dropout on the mixed states in training", least=0, below=1)
    match_vectors: bool = setting(
        True,
        help="with word vectors beside the states: scale the vectors to the states' root mean square over the training "
        "data, so that neither drowns the other",
    )
    vectors_dropout: float = setting(
        0.0,
        help="with word vectors beside the states: the share of words, drawn anew for each batch of training, whose "
        "vectors are zeros (the others are not scaled up)",
        least=0,
        below=1,
    )


AS_THEY_ARE = StateSettings()
"""All layers, unchanged, beside word vectors that match them."""


def numbers_of_layers(state_layers: str) -> list[int]:
    """The numbers that `state_layers` gives, none for all and top; raises `InputError` for what it cannot be."""
    if state_layers in ("all", "top"):
        return []
    numbers = list(map(int, state_layers.split(","))) if _LAYERS.fullmatch(state_layers) else []
    if not numbers or numbers != sorted(set(numbers)):
        raise InputError(
            f"--state-layers {shortened(state_layers)} is not possible: give all, top, or numbers from 0 in rising "
            "order, such as 0,2"
        )
    return numbers


def layer_rows(state_layers: str, names: Sequence[str]) -> list[int]:
    """Where the layers that `state_layers` chooses stand among those that there are.

    Args:
        state_layers: all, top, or numbers of the encoder's layers.
        names: of the layers that there are. Where they are not the numbers of an encoder's layers, they count from 0.

    Raises:
        InputError: `state_layers` is not possible, or there is no such layer.
    """
    if state_layers == "all":
        return list(range(len(names)))
    numbered = len(set(names)) == len(names) and all(name.isdecimal() for name in names)
    numbers = list(map(int, names)) if numbered else list(range(len(names)))
    if state_layers == "top":
        return [numbers.index(max(numbers))]
    chosen = numbers_of_layers(state_layers)
    if missing := [number for number in chosen if number not in numbers]:
        raise InputError(
            f"--state-layers {state_layers} is not possible: the layers here are {', '.join(map(str, numbers))}, and "
            f"there is no layer {missing[0]}"
        )
    return [numbers.index(number) for number in chosen]
