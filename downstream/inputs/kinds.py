"""Kinds of inputs: word vectors, layer states, or both side by side."""

from dataclasses import dataclass


@dataclass(frozen=True)
class InputKind:
    """What one run of a probe reads: word vectors, layer states (of a feature file or of a model), or both."""

    name: str
    words: bool
    states: bool


INPUT_KINDS = {
    kind.name: kind
    for kind in (
        InputKind("vectors", words=True, states=False),
        InputKind("both", words=True, states=True),
        InputKind("features", words=False, states=True),
        InputKind("model", words=False, states=True),
    )
}
"""By name; `features` are the states of a feature file, `model` those computed from a model directory."""
