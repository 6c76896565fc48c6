"""Options of training: what a call of `train_encoder` is told beside the config."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """What a run starts from, and how long it takes."""

    init_from: Annotated[
        str | None,
        Meta(
            description="start from the weights of a model or run directory",
            extra={"metavar": "MODEL"},
        ),
    ] = None
    max_time: Annotated[
        str | None,
        Meta(
            description="length of the whole run, evaluations included, e.g. 60m, 2h "
            "or 90s, in place of a number of updates",
            extra={"metavar": "TIME"},
        ),
    ] = None
