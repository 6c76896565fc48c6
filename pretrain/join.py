"""How do two runs of one direction each become one model directory?

python -m pretrain.join RUN_FORWARD RUN_BACKWARD MODEL
"""

import argparse
import sys
from collections.abc import Sequence

from elmoc.encoders.lstm import DIRECTIONS, BidirectionalEncoder
from elmoc.errors import InputError, run_command
from elmoc.files import refuse_existing
from elmoc.heads import ContinuousHeads
from elmoc.model_directory import ModelDirectory, read_model_directory, write_model_directory
from pretrain.setup import same_vectors


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
        "the word vectors": same_vectors(forward.word_vectors, backward.word_vectors),
        "the target vectors": same_vectors(forward.targets, backward.targets),
        "the processing of the word vectors": forward.transform.same_as(backward.transform),
    }
    for what, same in fits.items():
        if not same:
            raise InputError(f"{forward_path} and {backward_path} do not belong together: {what} differ")
    config = forward.encoder.config
    encoder = BidirectionalEncoder(config, directions=DIRECTIONS)
    heads = ContinuousHeads(
        directions=DIRECTIONS, projection_size=config.projection_size, target_size=forward.targets.size
    )
    for direction, model in models.items():
        encoder.direction(direction).load_state_dict(model.encoder.direction(direction).state_dict())
        if model.heads is None:
            raise InputError(f"{paths[direction]} was kept without its head (heads.safetensors): export it again")
        heads.direction(direction).load_state_dict(model.heads.direction(direction).state_dict())
    write_model_directory(
        output,
        ModelDirectory(
            encoder=encoder,
            heads=heads,
            transform=forward.transform,
            word_vectors=forward.word_vectors,
            targets=forward.targets,
            training={direction: model.training for direction, model in models.items()},
        ),
    )
    print(f"{output}: both directions in one model")


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m pretrain.join", description=__doc__.split("\n")[0])
    parser.add_argument("forward", help="run or model directory with the forward direction")
    parser.add_argument("backward", help="run or model directory with the backward direction")
    parser.add_argument("output", help="the model directory to write")
    arguments = parser.parse_args(argv)
    return run_command(lambda: join(arguments.forward, arguments.backward, arguments.output))


if __name__ == "__main__":
    sys.exit(main())
