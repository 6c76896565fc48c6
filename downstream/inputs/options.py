"""Options of inputs: which word vectors and which encoder a probe reads."""

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
