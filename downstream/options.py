"""Which hyper-parameters does every task have, and how do they become options of its command?"""

import argparse
import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from elmoc.errors import InputError


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Hyper-parameters that every task has; a task's own settings add to them."""

    learning_rate: float = field(metadata={"help": "Adam's learning rate"})
    gradient_norm: float = field(metadata={"help": "gradients are scaled down to this global norm"})
    batch_size: int = field(metadata={"help": "examples a batch"})
    epochs: int = field(metadata={"help": "most epochs"})
    patience: int = field(metadata={"help": "stop after so many epochs without a better development score"})

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not math.isfinite(value) or value < (1 if one.type is int else 0):
                raise InputError(
                    f"--{one.name.replace('_', '-')} {value} is not possible: "
                    f"{'a whole number from 1' if one.type is int else 'a number from 0'} is needed"
                )


Settings = TypeVar("Settings", bound=TrainingSettings)


def add_settings(parser: argparse.ArgumentParser, *, published: TrainingSettings, small: TrainingSettings) -> None:
    """Add `--small` and one option for each field of the settings."""
    group = parser.add_argument_group("hyper-parameters", "by default those published for ELMo")
    changed = [
        f"{one.name.replace('_', ' ')} {getattr(small, one.name)}"
        for one in fields(small)
        if getattr(small, one.name) != getattr(published, one.name)
    ]
    group.add_argument("--small", action="store_true", help=f"a preset for a CPU: {', '.join(changed)}")
    for one in fields(published):
        group.add_argument(
            f"--{one.name.replace('_', '-')}",
            type=type(getattr(published, one.name)),
            metavar="N",
            help=f"{one.metadata['help']} (default: {getattr(published, one.name)})",
        )


def chosen_settings(options: argparse.Namespace, *, published: Settings, small: Settings) -> Settings:
    """The settings that the command line asks for: an option goes before the preset."""
    given: dict[str, Any] = {
        one.name: getattr(options, one.name) for one in fields(published) if getattr(options, one.name) is not None
    }
    return replace(small if options.small else published, **given)
