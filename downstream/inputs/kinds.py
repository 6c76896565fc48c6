"""Kinds of inputs: word vectors, layer states, or both side by side."""

from argparse import Namespace
from dataclasses import dataclass

from elmoc.errors import InputError

SEPARATOR = " + "
"""Between the origins, and between the fingerprints, of several word vectors side by side."""


@dataclass(frozen=True)
class InputKind:
    """What one run of a probe reads: word vectors, layer states (of a feature file or of a model), or both."""

    name: str
    words: bool
    states: bool

    def require_sources(self, what: str, options: Namespace) -> None:
        """Raise an `InputError` that begins with `what` unless the options of a command name what is read."""
        if self.words and not options.vectors:
            raise InputError(f"{what} needs --vectors")
        if self.states and not self.words:
            if not getattr(options, self.name):
                raise InputError(f"{what} needs --{self.name}")
        elif self.states and not (options.features or options.model):
            raise InputError(f"{what} needs --features or --model")


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
