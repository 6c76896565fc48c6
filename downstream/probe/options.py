"""Options of a probe: its data, and how it is trained and scored."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from downstream.inputs.options import (
    INPUT_KINDS,
    InputKind,
    InputOptions,
    input_kinds,
)
from elmoc.errors import InputError

# More seeds than this are a slip of the keyboard.
MOST_SEEDS = 10_000

# Fields of a task's dataclass, by name.
Values = dict[str, bool | int | float | str | None]


@dataclass(frozen=True, kw_only=True)
class ProbeData:
    """Files of labelled data."""

    train: Annotated[
        list[Path],
        Meta(
            description="training data, plain or compressed",
            extra={"metavar": "FILE"},
        ),
    ] = field(default_factory=list)
    dev: Annotated[
        list[Path],
        Meta(description="chooses the best epoch", extra={"metavar": "FILE"}),
    ] = field(default_factory=list)
    test: Annotated[
        list[Path],
        Meta(
            description="is reported; without it, dev is",
            extra={"metavar": "FILE"},
        ),
    ] = field(default_factory=list)
    name: Annotated[
        str,
        Meta(
            description="the data's name in results (default: the folder of the "
            "reported file)",
            extra={"rare": True},
        ),
    ] = ""

    @property
    def files(self) -> dict[str, list[Path]]:
        """The files of each split that there is; the last split is reported."""
        splits = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: paths for name, paths in splits.items() if paths}


@dataclass(frozen=True, kw_only=True)
class ProbeOptions:
    """Training and scoring."""

    inputs: Annotated[
        str,
        Meta(
            description=f"one run each: {', '.join(INPUT_KINDS)} (default: "
            "vectors,both where both are given)",
            extra={"metavar": "KIND,…", "rare": True},
        ),
    ] = ""
    preset: Annotated[
        Literal["published", "small"],
        Meta(
            description="hyper-parameters of the papers, or for a CPU",
            extra={"flags": {"--small": "small"}},
        ),
    ] = "published"
    seeds: Annotated[
        int | str,
        Meta(description="seeds 1 … N, or A … B", extra={"metavar": "N|A-B"}),
    ] = 3
    out: Annotated[
        Path | None,
        Meta(
            description="append a line of JSON for each kind of inputs",
            extra={"option": "--results", "metavar": "FILE"},
        ),
    ] = None
    save: Annotated[
        Path | None,
        Meta(
            description="keep each trained probe in DIR/KIND.seedN; the training that "
            "was stopped goes on behind its last epoch, those before it are run again",
            extra={"metavar": "DIR", "rare": True},
        ),
    ] = None
    evaluate_only: Annotated[
        Path | None,
        Meta(
            description="train no probe: score a saved one (DIR/KIND.seedN) on --test",
            extra={"metavar": "PROBE", "rare": True},
        ),
    ] = None
    predictions: Annotated[
        Path | None,
        Meta(
            description="write predictions to DIR, as the official scorer reads them",
            extra={"metavar": "DIR", "rare": True},
        ),
    ] = None
    device: Annotated[
        str,
        Meta(description="auto, cpu, cuda or cuda:N", extra={"rare": True}),
    ] = "cpu"
    reader: Annotated[Values, Meta(description="how the data is read")] = field(
        default_factory=dict
    )
    settings: Annotated[
        Values,
        Meta(
            description="hyper-parameters, in place of the preset's",
            extra={"rare": True},
        ),
    ] = field(default_factory=dict)

    def seed_list(self) -> list[int]:
        """The seeds, in their order."""
        # Nine digits keep a slip from becoming a list that fills the memory.
        match = re.fullmatch(r"(?:([1-9]\d{0,8})-)?([1-9]\d{0,8})", str(self.seeds))
        seeds = range(int(match[1] or 1), int(match[2]) + 1) if match else range(0)
        if not 1 <= len(seeds) <= MOST_SEEDS:
            raise InputError(
                f"--seeds {str(self.seeds)[:50]!r} must be a number or a range, as 3 "
                f"or 2-5, of {MOST_SEEDS} at most"
            )
        return list(seeds)

    def kinds(self, inputs: InputOptions) -> list[InputKind]:
        """The kinds of inputs that are asked for, or those that `inputs` give."""
        has_states = inputs.features is not None or inputs.model is not None
        usual = {
            # The encoder's worth is asked for.
            (True, True): "vectors,both",
            (True, False): "vectors",
            (False, True): "features",
            (False, False): "",
        }
        return input_kinds(self.inputs or usual[bool(inputs.vectors), has_states])
