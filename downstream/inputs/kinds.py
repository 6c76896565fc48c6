"""Kinds of inputs: word vectors, layer states, or both side by side."""

from argparse import Namespace
from collections.abc import Sequence
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


def refuse_unread(options: Namespace, kinds: Sequence[InputKind], reader: str) -> None:
    """Raise an `InputError` where the options of a command name a source that none of the kinds reads.

    `reader` is what the sentence calls them.
    """
    for name in ("vectors", "features", "model"):
        value = getattr(options, name)
        if value and not any(kind.words if name == "vectors" else kind.states for kind in kinds):
            shown = " ".join(value) if name == "vectors" else value
            raise InputError(f"--{name} {shown} is not read by {reader}: leave it out, or ask for {name} or both, too")


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
