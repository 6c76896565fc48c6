"""Settings of probes: dataclasses whose fields are options of a probe's command.

A task has two of them: the hyper-parameters of its training and the options of its reader.
"""

from dataclasses import dataclass
from typing import Any

from downstream.inputs.state_settings import StateSettings
from elmoc.settings import setting

LARGE = 1e30
"""Larger numbers overflow in float32."""
MOST_UNITS = 100_000
"""More units of a layer are a mistake: their weights alone would fill 40 GB."""


@dataclass(frozen=True, kw_only=True)
class CommandSettings:
    """Settings of which each field is an option: `batch_size` is `--batch-size`."""


@dataclass(frozen=True, kw_only=True)
class ReaderOptions(CommandSettings):
    """Options of a task's reader; a task that has some adds fields, each with a default."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(StateSettings, CommandSettings):
    """Hyper-parameters that every task has; a task's own settings add to them."""

    learning_rate: float = setting(help="learning rate", least=0, most=LARGE)
    optimiser: str = setting("adam", help="Adam, or Adadelta with ρ = 0.95", choices=("adam", "adadelta"))
    halve_on_plateau: bool = setting(
        False, help="halve the learning rate after an epoch without a better development score"
    )
    decay: float = setting(1.0, help="multiply the learning rate by this after every 100 updates", least=0, most=2)
    gradient_norm: float = setting(
        0.0, help="gradients are scaled down to this global norm (0: they are not)", least=0, most=LARGE
    )
    gradient_value: float = setting(
        0.0, help="each number of a gradient is cut to ± this value (0: it is not)", least=0, most=LARGE
    )
    standardise: bool = setting(
        True, help="centre word vectors, and scale them to variance 1 over the words of the training data"
    )
    mix_l2: float = setting(
        0.0, help="L2 penalty on the weights of the scalar mix before the softmax", least=0, most=LARGE
    )
    batch_size: int = setting(help="examples a batch", least=1, most=1_000_000)
    epochs: int = setting(help="most epochs", least=1, most=1_000_000)
    patience: int = setting(
        help="stop after this number of epochs without a better development score", least=1, most=1_000_000
    )
    train_fraction: float = setting(
        1.0,
        help="train on a random part of the data, the same for all seeds and inputs, smaller ones inside larger",
        above=0,
        most=1,
    )


def size_setting(help: str, *, most: int = MOST_UNITS) -> Any:
    """A field for a whole number from 1 to `most`."""
    return setting(help=help, least=1, most=most)


def dropout_setting(help: str) -> Any:
    """A field for a probability of dropout."""
    return setting(help=help, least=0, below=1)


def option_name(name: str) -> str:
    """The option of a field, as it is written in a command."""
    return f"--{name.replace('_', '-')}"
