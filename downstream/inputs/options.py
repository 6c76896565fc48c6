"""Options of inputs: which word vectors and which layers does a probe read?"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from elmoc.errors import InputError

# Between the origins, and between the fingerprints, of several word vectors side by
# side.
SEPARATOR = " + "


@dataclass(frozen=True)
class InputKind:
    """A kind of inputs: word vectors, layer states, or both side by side.

    name: of the kind, as `--inputs` takes it.
    words: whether it has word vectors.
    states: whether it has layer states.
    """

    name: str
    words: bool
    states: bool


# By name.
INPUT_KINDS = {
    "vectors": InputKind("vectors", words=True, states=False),
    "features": InputKind("features", words=False, states=True),
    "both": InputKind("both", words=True, states=True),
}


def input_kinds(text: str) -> list[InputKind]:
    """The kinds of inputs that a user names, with commas between; each counts once."""
    names = list(dict.fromkeys(text.split(",")))
    if not set(names) <= set(INPUT_KINDS):
        raise InputError(
            f"--inputs must be some of {', '.join(INPUT_KINDS)}; give --features or "
            "--model, and --vectors"
        )
    return [INPUT_KINDS[name] for name in names]


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """Where word vectors and layer states come from."""

    vectors: Annotated[
        list[str],
        Meta(
            description="word vectors: FILE.bin, FILE.vec, FILE.txt, a model with a "
            "character CNN, or random:SEED:SIZE; several stand side by side",
            extra={"metavar": "V"},
        ),
    ] = field(default_factory=list)
    features: Annotated[
        Path | None,
        Meta(
            description="feature file (`elmoc dump-features`)",
            extra={"metavar": "FILE.h5"},
        ),
    ] = None
    model: Annotated[
        Path | None,
        Meta(
            description="model or run directory, read without a feature file",
            extra={"metavar": "DIR"},
        ),
    ] = None


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
    ] = False


# All layers, beside word vectors, all unchanged.
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
