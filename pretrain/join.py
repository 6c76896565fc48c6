"""Joining: two runs of one direction each become one model directory.

python -m pretrain.join RUN_FORWARD RUN_BACKWARD MODEL
"""

import argparse
import sys
from collections.abc import Sequence

from torch import Tensor

from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import BidirectionalEncoder, direction_name
from elmoc.errors import InputError, run_command
from elmoc.files.writing import locked, refuse_existing
from elmoc.model_directory import (
    ModelDirectory,
    OutputLayerRecord,
    read_model_directory,
    write_model_directory,
)


def join(forward_path: str, backward_path: str, output: str) -> None:
    """Write one model directory with the forward half of one model and the backward
    half of another.

    Raises `InputError` when a direction is missing or the two do not fit (sizes, word
    vectors, targets).
    """
    with locked(output):
        refuse_existing(output)
        models = {
            "forward": read_model_directory(forward_path),
            "backward": read_model_directory(backward_path),
        }
        if problem := misfit(**models):
            raise InputError(
                f"{forward_path} (forward) and {backward_path} (backward) do not fit: look at {problem}"
            )
        write_model_directory(output, joined(**models))
    print(f"{output}: both directions in one model")


def misfit(forward: ModelDirectory, backward: ModelDirectory) -> str | None:
    """What keeps two models from being the halves of one; None where nothing does."""
    fits = {
        "the directions": "forward" in forward.encoder.directions
        and "backward" in backward.encoder.directions,
        "the encoder's sizes": forward.encoder.config == backward.encoder.config,
        "the word vectors": forward.word_vectors.same_as(backward.word_vectors),
        "the output layers": forward.output_layer.is_like(backward.output_layer),
        "the processing of the word vectors": forward.transform.same_as(
            backward.transform
        ),
    }
    return next((what for what, fit in fits.items() if not fit), None)


def joined(forward: ModelDirectory, backward: ModelDirectory) -> ModelDirectory:
    """The model with the directions of two models.

    Of output layers that the directions of a model share, the two models have two
    different ones: they are left out.
    """
    encoder = BidirectionalEncoder(forward.encoder.config, directions=DIRECTIONS)
    weights: dict[str, Tensor] = {}
    for direction, model in zip(DIRECTIONS, (forward, backward), strict=True):
        encoder.direction(direction).load_state_dict(
            model.encoder.direction(direction).state_dict()
        )
        own = model.output_layer.weights or {}
        prefix = f"{direction_name(direction)}."
        weights |= {
            name: tensor for name, tensor in own.items() if name.startswith(prefix)
        }
    mine = forward.output_layer.transform
    theirs = backward.output_layer.transform
    same = weights and mine is not None and theirs is not None and mine.same_as(theirs)
    return ModelDirectory(
        encoder=encoder,
        output_layer=OutputLayerRecord(
            forward.output_layer.config, weights or None, mine if same else None
        ),
        transform=forward.transform,
        word_vectors=forward.word_vectors,
        training={"forward": forward.training, "backward": backward.training},
        stored_vectors=forward.stored_vectors or backward.stored_vectors,
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pretrain.join", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "forward", help="run or model directory with the forward direction"
    )
    parser.add_argument(
        "backward", help="run or model directory with the backward direction"
    )
    parser.add_argument("output", help="the model directory to write")
    arguments = parser.parse_args(argv)
    return run_command(
        lambda: join(arguments.forward, arguments.backward, arguments.output)
    )


if __name__ == "__main__":
    sys.exit(main())
