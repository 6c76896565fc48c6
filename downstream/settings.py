"""Settings of a task: hyper-parameters of its probe, and options of its reader."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta

from downstream.inputs.options import AS_THEY_ARE, InputKind, StateSettings
from elmoc.settings import convert, option_name

# Of small presets. Their few updates are not enough for a mix that learns at the rate
# of all other weights, nor for word vectors of any size.
SMALL_INPUTS: dict[str, Any] = {
    "mix_rate": 10.0,
    "match_vectors": True,
    "standardise": True,
}


# Larger numbers overflow in float32.
LARGE = 1e30
# The weights of a layer of more units would fill 40 GB.
MOST_UNITS = 100_000
Size = Annotated[int, Meta(ge=1, le=MOST_UNITS)]
# A probability of dropout.
Dropout = Annotated[float, Meta(ge=0, lt=1)]


@dataclass(frozen=True, kw_only=True)
class ReaderOptions:
    """Options of a task's reader; a task that has some adds fields, each with a
    default: `column` is `--column`.
    """


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(StateSettings):
    """Hyper-parameters that every task has; a task's own settings add to them."""

    learning_rate: Annotated[float, Meta(ge=0, le=LARGE, description="learning rate")]
    optimiser: Annotated[
        Literal["adam", "adadelta"], Meta(description="Adam, or Adadelta with ρ = 0.95")
    ] = "adam"
    halve_on_plateau: Annotated[
        bool,
        Meta(
            description="halve the learning rate after an epoch without a better "
            "dev score"
        ),
    ] = False
    decay: Annotated[
        float,
        Meta(
            ge=0,
            le=2,
            description="multiply the learning rate by this after every 100 updates",
        ),
    ] = 1.0
    gradient_norm: Annotated[
        float,
        Meta(
            ge=0, le=LARGE, description="largest global norm of the gradients (0: any)"
        ),
    ] = 0.0
    gradient_value: Annotated[
        float,
        Meta(
            ge=0, le=LARGE, description="largest absolute value in a gradient (0: any)"
        ),
    ] = 0.0
    standardise: Annotated[
        bool,
        Meta(
            description="centre word vectors and scale them to variance 1 over the "
            "training words"
        ),
    ] = False
    mix_l2: Annotated[
        float,
        Meta(
            ge=0,
            le=LARGE,
            description="L2 penalty on the scalar mix before its softmax",
        ),
    ] = 0.0
    batch_size: Annotated[int, Meta(ge=1, le=1_000_000, description="examples a batch")]
    epochs: Annotated[int, Meta(ge=1, le=1_000_000, description="most epochs")]
    patience: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="stop after this number of epochs without a better dev score",
        ),
    ]
    train_fraction: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="train on a random part of the data; a smaller part lies "
            "inside a larger one",
        ),
    ] = 1.0


AnyTraining = TypeVar("AnyTraining", bound=TrainingSettings)
Options = TypeVar("Options")


def with_changes(
    defaults: Options,
    changes: Mapping[str, Any],
    *,
    where: str = "",
    name: Callable[[str], str] = option_name,
) -> Options:
    """Settings or options with other values in some fields.

    Args:
        defaults: a dataclass instance.
        changes: field → value.
        where: see `convert`.
        name: what the user calls a field.

    Raises:
        InputError: an unknown field, or an impossible value.
    """
    values = {**asdict(defaults), **changes}  # type: ignore[call-overload]
    return convert(values, type(defaults), where=where, name=name)


def settings_of_inputs(settings: AnyTraining, kind: InputKind) -> AnyTraining:
    """The hyper-parameters of a probe on one kind of inputs.

    Settings that do not concern the kind get their defaults, so that results of word
    vectors alone are the same whatever is done with layer states elsewhere.
    """
    return settings if kind.states else replace(settings, **vars(AS_THEY_ARE))
