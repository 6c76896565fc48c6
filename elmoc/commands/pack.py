"""`elmoc pack`: the command that makes one small model directory of a model and its
word vectors.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from elmoc.commands import ModelOptions
from elmoc.errors import say


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    """The model directory that is written."""

    output: Annotated[
        str, Meta(description="the model directory to write", extra={"metavar": "OUT"})
    ]
    size: Annotated[
        str,
        Meta(
            pattern=r"^[0-9]{1,6}(\.[0-9]+)?MB$",
            description="megabytes that its files take together at most, such as 50MB",
            extra={"option": "--size"},
        ),
    ]
    weights: Annotated[
        Literal["int8", "float16"], Meta(description="type of the encoder's matrices")
    ] = "int8"


def run(options: Options) -> None:
    """Pack a model."""
    from elmoc.files.writing import locked
    from elmoc.model import ElmoC
    from elmoc.packing import pack

    size = int(float(options.size.removesuffix("MB")) * 10**6)
    # Packing takes minutes: an output that is there is told before.
    with locked(options.output, new=True):
        # What packing changes is compared with no other rounding.
        elmo = ElmoC.from_pretrained(
            options.model, vectors=options.vectors, precision="float32"
        )
        packed = pack(elmo, size, weight_type=options.weights)
        packed.save_pretrained(options.output)
    say(
        f"{options.output}: fingerprint {packed.fingerprint}, word vectors "
        f"{packed.word_vectors.fingerprint}"
    )
