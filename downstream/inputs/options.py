"""Options of inputs: which word vectors and which encoder a probe reads."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from msgspec import Meta

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


# By name. `features` are layer states of a feature file, `model` those computed from a
# model directory.
INPUT_KINDS = {
    "vectors": InputKind("vectors", words=True, states=False),
    "both": InputKind("both", words=True, states=True),
    "features": InputKind("features", words=False, states=True),
    "model": InputKind("model", words=False, states=True),
}


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

    def given(self) -> list[str]:
        """The names of the kinds of inputs that need nothing else."""
        names = ("vectors", "features", "model")
        return [name for name in names if getattr(self, name)]
