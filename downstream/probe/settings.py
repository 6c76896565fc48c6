"""Which hyper-parameters does every task have, and how do they become options of its command?"""

import argparse
import math
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, TypeVar

from elmoc.errors import InputError


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Hyper-parameters that every task has; a task's own settings add to them.

    A field's metadata: `help`; `least` (numbers; 1 for whole numbers and 0 for others where it is not there), `below`;
    `choices` (texts).
    """

    learning_rate: float = field(metadata={"help": "learning rate"})
    optimiser: str = field(
        default="adam", metadata={"help": "Adam, or Adadelta with ρ = 0.95", "choices": ("adam", "adadelta")}
    )
    halve_on_plateau: bool = field(
        default=False, metadata={"help": "halve the learning rate after an epoch without a better development score"}
    )
    decay: float = field(
        default=1.0, metadata={"help": "multiply the learning rate by this after every 100 updates", "least": 0.0}
    )
    gradient_norm: float = field(
        default=0.0, metadata={"help": "gradients are scaled down to this global norm (0: they are not)"}
    )
    gradient_value: float = field(
        default=0.0, metadata={"help": "each number of a gradient is cut to ± this value (0: it is not)"}
    )
    standardise: bool = field(
        default=True,
        metadata={"help": "centre word vectors, and scale them to variance 1 over the words of the training data"},
    )
    mix_l2: float = field(
        default=0.0, metadata={"help": "L2 penalty on the weights of the scalar mix before the softmax"}
    )
    batch_size: int = field(metadata={"help": "examples a batch"})
    epochs: int = field(metadata={"help": "most epochs"})
    patience: int = field(metadata={"help": "stop after so many epochs without a better development score"})

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            choices = one.metadata.get("choices")
            if choices is not None and value not in choices:
                raise InputError(f"{_option(one)} {value!r} is not possible: choose from {', '.join(choices)}")
            if isinstance(value, (bool, str)):
                continue
            least = one.metadata.get("least", 1 if isinstance(value, int) else 0)
            below = one.metadata.get("below", math.inf)
            if not math.isfinite(value) or value < least or value >= below:
                kind = "a whole number" if isinstance(value, int) else "a number"
                limit = f" and under {below}" if below < math.inf else ""
                raise InputError(f"{_option(one)} {value} is not possible: {kind} from {least}{limit} is needed")


Settings = TypeVar("Settings", bound=TrainingSettings)


def dropout_field(help: str) -> Any:
    """A field for a probability of dropout."""
    return field(metadata={"help": help, "below": 1})


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
        default = getattr(published, one.name)
        text = f"{one.metadata['help']} (default: {default})"
        if isinstance(default, bool):
            group.add_argument(_option(one), action=argparse.BooleanOptionalAction, default=None, help=text)
        else:
            metavar = "|".join(one.metadata["choices"]) if "choices" in one.metadata else "N"
            group.add_argument(_option(one), type=type(default), metavar=metavar, help=text)


def chosen_settings(options: argparse.Namespace, *, published: Settings, small: Settings) -> Settings:
    """The settings that the command line asks for: an option goes before the preset."""
    given: dict[str, Any] = {
        one.name: getattr(options, one.name) for one in fields(published) if getattr(options, one.name) is not None
    }
    return replace(small if options.small else published, **given)


def given_options(options: argparse.Namespace, settings: TrainingSettings) -> list[str]:
    """`--small` and those options of settings that the command line has."""
    values = {one: getattr(options, one.name) for one in fields(settings)}
    given = [_option(one, value) for one, value in values.items() if value is not None]
    return ["--small", *given] if options.small else given


def _option(one: "Field[Any]", value: Any = None) -> str:
    return f"--{'no-' if value is False else ''}{one.name.replace('_', '-')}"
