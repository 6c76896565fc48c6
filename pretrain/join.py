"""Joining: two runs of one direction each become one model directory.

python -m pretrain.join RUN_FORWARD RUN_BACKWARD MODEL
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from elmoc.command_line import run_main
from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import BidirectionalEncoder, direction_name
from elmoc.errors import InputError, say
from elmoc.files.writing import locked
from elmoc.model_directory import (
    ModelDirectory,
    OutputLayerRecord,
    read_model_directory,
    write_model_directory,
)


@dataclass(frozen=True)
class JoinCommand:
    """The command line."""

    forward: Annotated[
        str, Meta(description="run or model directory with the forward direction")
    ]
    backward: Annotated[
        str, Meta(description="run or model directory with the backward direction")
    ]
    output: Annotated[Path, Meta(description="the model directory to write")]


def join(forward_path: str, backward_path: str, output: Path | str) -> None:
    """Write one model directory with the forward half of one model and the backward
    half of another.

    Raises:
        InputError: a direction is missing, or the two do not fit: sizes, word vectors,
            targets.
    """
    with locked(output, new=True):
        forward = read_model_directory(forward_path)
        backward = read_model_directory(backward_path)
        fits = {
            "the forward direction": "forward" in forward.encoder.directions,
            "the backward direction": "backward" in backward.encoder.directions,
            "the encoder's sizes": forward.encoder.config == backward.encoder.config,
            "the word vectors": forward.word_vectors.same_as(backward.word_vectors),
            "the output layers": forward.output_layer.is_like(backward.output_layer),
            "the processing of the word vectors": forward.transform.same_as(
                backward.transform
            ),
        }
        for name, is_same in fits.items():
            if not is_same:
                raise InputError(
                    f"{forward_path} (forward) and {backward_path} (backward) do not "
                    f"fit: look at {name}"
                )
        write_model_directory(output, joined(forward, backward))
    say(f"{output}: both directions in one model")


def joined(forward: ModelDirectory, backward: ModelDirectory) -> ModelDirectory:
    """The model with the directions of two models.

    Output layers that the directions of a model share are left out: the two models have
    two different ones.
    """
    encoder = BidirectionalEncoder(forward.encoder.config, directions=DIRECTIONS)
    weights: dict[str, Any] = {}
    for direction, model in zip(DIRECTIONS, (forward, backward), strict=True):
        half = model.encoder.direction(direction)
        encoder.direction(direction).load_state_dict(half.state_dict())
        # Each half brings its own output layer.
        weights |= {
            name: tensor
            for name, tensor in (model.output_layer.weights or {}).items()
            if name.startswith(f"{direction_name(direction)}.")
        }
    # The transform of the targets stays with output layers that were trained for it.
    transform = forward.output_layer.transform
    other = backward.output_layer.transform
    if not (weights and transform and other and transform.same_as(other)):
        transform = None
    return ModelDirectory(
        encoder=encoder,
        output_layer=OutputLayerRecord(
            forward.output_layer.config, weights or None, transform
        ),
        transform=forward.transform,
        word_vectors=forward.word_vectors,
        training={"forward": forward.training, "backward": backward.training},
        stored_vectors=forward.stored_vectors or backward.stored_vectors,
    )


main = partial(
    run_main,
    JoinCommand,
    lambda given: join(given.forward, given.backward, given.output),
    prog="python -m pretrain.join",
    description="Join two runs of one direction each to one model directory.",
)

if __name__ == "__main__":
    sys.exit(main())
