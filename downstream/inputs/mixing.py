"""Mixing of layer states: which layers of an encoder does a probe read, and how?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from elmoc.errors import InputError


@dataclass(frozen=True, kw_only=True)
class StateSettings:
    """How layer states are mixed, and how word vectors beside them are scaled."""

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
    """The rows of the layers that a setting chooses.

    Args:
        state_layers: `all`, `top`, or names in rising order, such as `0,2`.
        names: of the layers that there are, by row: their numbers in the encoder, or
            the one name of a file of another kind of layer, such as `average`.

    Raises:
        InputError: a layer that is not there, or text that is no list of layers.
    """
    if state_layers == "all":
        return list(range(len(names)))
    # Numbers as strings: longer ones are larger.
    rising = sorted(set(names), key=lambda name: (len(name), name))
    chosen = rising[-1:] if state_layers == "top" else state_layers.split(",")
    if chosen != [name for name in rising if name in chosen]:
        raise InputError(
            f"--state-layers {state_layers[:50]!r} must be all, top, or some of the "
            f"layers {','.join(rising)} in rising order"
        )
    return [names.index(name) for name in chosen]
