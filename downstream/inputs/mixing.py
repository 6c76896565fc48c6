"""Mixing of layer states: which layers of an encoder does a probe read, and how?"""

import re
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
        state_layers: `all`, `top`, or numbers in rising order, such as `0,2`.
        names: of the layers that there are, by row. Names that are not the numbers of
            an encoder's layers count from 0.

    Raises:
        InputError: a layer that is not there, or text that is no list of layers.
    """
    if state_layers == "all":
        return list(range(len(names)))
    numbers = list(range(len(names)))
    if len(set(names)) == len(names) and all(name.isdecimal() for name in names):
        numbers = [int(name) for name in names]
    if state_layers == "top":
        return [numbers.index(max(numbers))]
    # Four digits are more than any encoder has; int() would read thousands.
    chosen = [int(each) for each in re.findall(r"\d{1,4}", state_layers)]
    is_list = ",".join(map(str, chosen)) == state_layers
    is_rising = chosen == sorted(set(chosen))
    if not (chosen and is_list and is_rising and set(chosen) <= set(numbers)):
        known = ",".join(map(str, sorted(numbers)))
        raise InputError(
            f"--state-layers {state_layers[:50]!r} must be all, top, or some of the "
            f"layers {known} in rising order"
        )
    return [numbers.index(number) for number in chosen]
