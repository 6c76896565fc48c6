"""Suite files: which probes a suite has, on which data, with which seeds and options, as TOML.

    vectors = "vectors.bin"            # word vectors of all probes, or a list of them; --vectors goes before it
    seeds = 3                          # of every probe: 1 … N
    baseline_seeds = 5                 # of word vectors alone (default: as `seeds`)

    [[probe]]
    task = "ner"
    name = "WNUT-17"                   # what results call the data
    train = "wnut17/train.conll.gz"    # a file, or a list of them
    dev = "wnut17/dev.conll.gz"
    test = "wnut17/test.conll.gz"      # is reported; without it, dev is
    preset = "small"                   # or "published"
    options = { epochs = 15 }          # of the task's command
    vectors = { dropout = 0.5 }        # options of one kind of inputs alone: vectors, features or both

    [probe.quick]                      # its part in the quick suite, if it has one
    seeds = 1
    train_fraction = 0.25
    options = { epochs = 8 }

Paths are relative to the suite file, those of data to `--data DIR` where that is given.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

INPUTS = ("vectors", "features", "both")
"""The kinds of inputs that a suite runs."""
ADVICE = "correct the suite file"
MOST_PROBES, MOST_SEEDS = 200, 1_000

Text = Annotated[str, Meta(min_length=1)]
Files = Text | Annotated[list[Text], Meta(min_length=1)]
Options = dict[str, bool | int | float | str]
Seeds = Annotated[int, Meta(ge=1, le=MOST_SEEDS)]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What a probe, or its part in the quick suite, can be told; None leaves what is said elsewhere.

    Options of one kind of inputs go before those of all.
    """

    seeds: Seeds | None = None
    baseline_seeds: Seeds | None = None
    train_fraction: float | None = None
    options: Options = field(default_factory=dict)
    vectors: Options = field(default_factory=dict)
    features: Options = field(default_factory=dict)
    both: Options = field(default_factory=dict)

    def all_options(self, kind: str) -> Options:
        """The options in the table `kind` (`options`, or a kind of inputs)."""
        options: Options = getattr(self, kind)
        if kind == "options" and self.train_fraction is not None:
            return options | {"train_fraction": self.train_fraction}
        return options


@dataclass(frozen=True, kw_only=True)
class ProbeEntry(Changes):
    """A `[[probe]]` of a suite file."""

    task: Text
    name: Text
    train: Files
    dev: Files
    test: Files | None = None
    preset: Literal["small", "published"] = "small"
    quick: Changes | None = None


@dataclass(frozen=True, kw_only=True)
class SuiteEntries:
    """What is in a suite file."""

    probe: Annotated[list[ProbeEntry], Meta(min_length=1, max_length=MOST_PROBES)]
    vectors: Text | Annotated[list[Text], Meta(min_length=1)] | None = None
    seeds: Seeds = 3
    baseline_seeds: Seeds | None = None
