"""Settings of layer states: how those of an encoder are given to a probe, which its scalar mix reads."""

import re
from dataclasses import dataclass

from elmoc.errors import InputError, shortened
from elmoc.settings import setting

MOST_LAYERS = 10_000
"""Numbers of layers are smaller, whatever the encoder."""
SMALL_MIX_RATE = 10.0
"""Of small presets: in their few updates, a mix that learns at the rate of all else does not get where it would."""
_LAYERS = re.compile(r"\d{1,4}(,\d{1,4})*")


@dataclass(frozen=True, kw_only=True)
class StateSettings:
    """What is done with layer states before and after they are mixed, and beside them."""

    state_layers: str = setting(
        "all", help="the layers that are mixed: all, top (the last), or their numbers from 0, such as 0,2"
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


def layer_rows(state_layers: str, layers: int) -> list[int]:
    """The layers that `state_layers` names, of `layers` that there are; raises `InputError` for impossible ones."""
    if state_layers == "all":
        return list(range(layers))
    if state_layers == "top":
        return [layers - 1]
    rows = list(map(int, state_layers.split(","))) if _LAYERS.fullmatch(state_layers) else []
    if not rows or rows != sorted(set(rows)):
        raise InputError(
            f"--state-layers {shortened(state_layers)} is not possible: give all, top, or numbers from 0 in rising "
            "order, such as 0,2"
        )
    if rows[-1] >= layers:
        raise InputError(
            f"--state-layers {state_layers} is not possible: there are {layers} layers, 0 to {layers - 1}, and no "
            f"layer {rows[-1]}"
        )
    return rows
