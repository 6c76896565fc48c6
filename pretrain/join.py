"""Joining: two runs of one direction each become one model directory.

python -m pretrain.join RUN_FORWARD RUN_BACKWARD MODEL
"""

import argparse
import sys
from collections.abc import Mapping, Sequence

from torch import Tensor

from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import BidirectionalEncoder, direction_name
from elmoc.errors import InputError, run_command
from elmoc.files.locks import locked
from elmoc.files.writing import refuse_existing
from elmoc.model_directory import ModelDirectory, OutputLayerRecord, read_model_directory, write_model_directory
from pretrain.input_layers import VectorInput
from pretrain.output_layers import SHARED


def join(forward_path: str, backward_path: str, output: str) -> None:
    """Write one model directory with the forward half of one model and the backward half of another.

    Raises `InputError` when a direction is missing or the two do not fit (sizes, word vectors, targets).
    """
    with locked(output):
        refuse_existing(output)
        write_model_directory(output, joined({"forward": forward_path, "backward": backward_path}))
    print(f"{output}: both directions in one model")


def joined(paths: Mapping[str, str]) -> ModelDirectory:
    """The model whose directions are those of the models at `paths`."""
    models = {direction: read_model_directory(path) for direction, path in paths.items()}
    forward, backward = models["forward"], models["backward"]
    fits = {
        "the directions": all(direction in model.encoder.directions for direction, model in models.items()),
        "the trained input layers": not all(map(trains_its_input, models.values())),
        "the encoder's sizes": forward.encoder.config == backward.encoder.config,
        "the word vectors": forward.word_vectors.same_as(backward.word_vectors),
        "the output layers": forward.output_layer.is_like(backward.output_layer),
        "the processing of the word vectors": forward.transform.same_as(backward.transform),
    }
    for what, fit in fits.items():
        if not fit:
            raise InputError(
                f"{paths['forward']} (forward) and {paths['backward']} (backward) do not fit: look at {what}"
            )
    encoder = BidirectionalEncoder(forward.encoder.config, directions=DIRECTIONS)
    for direction, model in models.items():
        encoder.direction(direction).load_state_dict(model.encoder.direction(direction).state_dict())
    weights = joined_weights(models)
    mine, theirs = forward.output_layer.transform, backward.output_layer.transform
    same = weights is not None and mine is not None and theirs is not None and mine.same_as(theirs)
    return ModelDirectory(
        encoder=encoder,
        output_layer=OutputLayerRecord(forward.output_layer.config, weights, mine if same else None),
        transform=forward.transform,
        word_vectors=forward.word_vectors,
        training={direction: model.training for direction, model in models.items()},
        stored_vectors=forward.stored_vectors or backward.stored_vectors,
    )


def trains_its_input(model: ModelDirectory) -> bool:
    """Whether the run of a model has trained the network that makes its word vectors."""
    recipe = model.training.get("recipe")
    return isinstance(recipe, dict) and recipe.get("input_layer.kind", VectorInput.kind) != VectorInput.kind


def joined_weights(models: Mapping[str, ModelDirectory]) -> dict[str, Tensor] | None:
    """The weights of the output layers of both directions; None for those of a kind that directions share."""
    weights = {direction: model.output_layer.weights or {} for direction, model in models.items()}
    if any(name.startswith(f"{SHARED}.") for own in weights.values() for name in own):
        print("both directions share an output layer of this kind, and two runs have two: it is left out")
        return None
    return {
        name: tensor
        for direction, own in weights.items()
        for name, tensor in own.items()
        if name.startswith(f"{direction_name(direction)}.")
    } or None


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pretrain.join", description=__doc__.split("\n")[0])
    parser.add_argument("forward", help="run or model directory with the forward direction")
    parser.add_argument("backward", help="run or model directory with the backward direction")
    parser.add_argument("output", help="the model directory to write")
    arguments = parser.parse_args(argv)
    return run_command(lambda: join(arguments.forward, arguments.backward, arguments.output))


if __name__ == "__main__":
    sys.exit(main())
