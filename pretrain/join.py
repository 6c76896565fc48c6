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
from elmoc.files import refuse_existing
from elmoc.model_directory import ModelDirectory, OutputLayerRecord, read_model_directory, write_model_directory


def join(forward_path: str, backward_path: str, output: str) -> None:
    """Write one model directory with the forward half of one model and the backward half of another.

    Raises `InputError` when a direction is missing or the two do not fit (sizes, word vectors, targets).
    """
    refuse_existing(output)
    paths = {"forward": forward_path, "backward": backward_path}
    models = {direction: read_model_directory(path) for direction, path in paths.items()}
    for direction, model in models.items():
        if direction not in model.encoder.directions:
            raise InputError(
                f"{paths[direction]} has no {direction} direction: give the forward run first, then the backward one"
            )
    forward, backward = models["forward"], models["backward"]
    fits = {
        "the encoder's sizes": forward.encoder.config == backward.encoder.config,
        "the word vectors": forward.word_vectors.same_as(backward.word_vectors),
        "the output layers": forward.output_layer.is_like(backward.output_layer),
        "the processing of the word vectors": forward.transform.same_as(backward.transform),
    }
    for what, same in fits.items():
        if not same:
            raise InputError(f"{forward_path} and {backward_path} do not belong together: {what} differ")
    encoder = BidirectionalEncoder(forward.encoder.config, directions=DIRECTIONS)
    weights: dict[str, Tensor] = {}
    for direction, model in models.items():
        encoder.direction(direction).load_state_dict(model.encoder.direction(direction).state_dict())
        if model.output_layer.weights is None:
            raise InputError(f"{paths[direction]} was kept without its head (heads.safetensors): export it again")
        prefix = f"{direction_name(direction)}."
        weights |= {name: each for name, each in model.output_layer.weights.items() if name.startswith(prefix)}
    write_model_directory(
        output,
        ModelDirectory(
            encoder=encoder,
            output_layer=OutputLayerRecord(forward.output_layer.config, weights),
            transform=forward.transform,
            word_vectors=forward.word_vectors,
            training={direction: model.training for direction, model in models.items()},
        ),
    )
    print(f"{output}: both directions in one model")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pretrain.join", description=__doc__.split("\n")[0])
    parser.add_argument("forward", help="run or model directory with the forward direction")
    parser.add_argument("backward", help="run or model directory with the backward direction")
    parser.add_argument("output", help="the model directory to write")
    arguments = parser.parse_args(argv)
    return run_command(lambda: join(arguments.forward, arguments.backward, arguments.output))


if __name__ == "__main__":
    sys.exit(main())
