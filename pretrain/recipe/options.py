"""Options of a recipe: what can be said about the way from text to a model."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from elmoc.settings import value_from_text
from elmoc.text.options import RawTextOptions


@dataclass(frozen=True, kw_only=True)
class ContentOptions(RawTextOptions):
    """What a model is made of. A recipe that goes on needs the same."""

    vectors: Annotated[
        str | None,
        Meta(
            description="word vectors to use (default: fastText trained on the text, "
            "or the model's)",
            extra={"metavar": "FILE"},
        ),
    ] = None
    fasttext: Annotated[
        dict[str, Any] | None,
        Meta(
            description="options of data_scripts.train_fasttext, e.g. "
            "'{minn = 2, maxn = 5}' for a language of many endings",
            extra={"metavar": "OPTIONS", "parse": value_from_text},
        ),
    ] = None
    teacher: Annotated[
        str | None,
        Meta(
            description="pretrained Transformer whose vectors of single words stand "
            "beside the word vectors: its directory, or its name on the Hugging Face "
            "hub",
            extra={"metavar": "MODEL"},
        ),
    ] = None
    targets: Annotated[
        Literal["none", "centre", "whiten"],
        Meta(
            description="how target vectors are post-processed (with --init-from: as "
            "the model's)"
        ),
    ] = "whiten"
    init_from: Annotated[
        str | None,
        Meta(
            description="the model or run directory to go on from",
            extra={"metavar": "MODEL"},
        ),
    ] = None
    general: Annotated[
        str | None,
        Meta(
            description="with --init-from: corpus directory of general text to mix in "
            "(default: the corpus that the model was trained on, where it is there; "
            "'none' for none)",
            extra={"metavar": "CORPUS"},
        ),
    ] = None
    general_share: Annotated[
        float,
        Meta(gt=0, lt=1, description="share of general text in the words read"),
    ] = 0.3
    held_out: Annotated[
        list[str],
        Meta(
            description="text that is evaluated on, and not trained on (default: a "
            "part of the text)",
            extra={"metavar": "FILE"},
        ),
    ] = field(default_factory=list)
    leave_out: Annotated[
        list[str],
        Meta(
            description="tokenised text whose sentences must not be read, such as the "
            "parts of tasks that you report scores on",
            extra={"metavar": "FILE"},
        ),
    ] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class RecipeOptions(ContentOptions):
    """How a model is made from text, or adapted to it (`init_from`)."""

    max_time: Annotated[
        str | None,
        Meta(
            description="how long the training takes, e.g. 20m, 3h (default: the text "
            "is read once, or twice with --init-from)",
            extra={"metavar": "TIME"},
        ),
    ] = None
    config: Annotated[
        str | None,
        Meta(
            description="settings of the training (default: the file of "
            "pretrain/configs for text, time and machine)",
            extra={"metavar": "TOML"},
        ),
    ] = None
    overrides: Annotated[
        list[str],
        Meta(
            description="override a setting of training",
            extra={
                "option": "--set",
                "metavar": "SECTION.KEY=VALUE",
                "repeat": True,
            },
        ),
    ] = field(default_factory=list)
