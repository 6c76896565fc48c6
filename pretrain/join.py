"""Joining: two runs of one direction each become one model directory.

python -m pretrain.join RUN_FORWARD RUN_BACKWARD MODEL
"""

import argparse
import sys
from collections.abc import Mapping, Sequence

from torch import Tensor

from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import BidirectionalEncoder, check_weights, direction_name
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
    for direction, model in models.items():
        if direction not in model.encoder.directions:
            raise InputError(
                f"{paths[direction]} has no {direction} direction: give the forward run first, then the backward one"
            )
    forward, backward = models["forward"], models["backward"]
    if all(trains_its_input(model) for model in models.values()):
        raise InputError(
            f"{paths['forward']} and {paths['backward']} have each trained an input layer of their own, where both "
            "directions need the same: train both in one run"
        )
    fits = {
        "the encoder's sizes": forward.encoder.config == backward.encoder.config,
        "the word vectors": forward.word_vectors.same_as(backward.word_vectors),
        "the output layers": forward.output_layer.is_like(backward.output_layer),
        "the processing of the word vectors": forward.transform.same_as(backward.transform),
    }
    for what, same in fits.items():
        if not same:
            raise InputError(
                f"{paths['forward']} and {paths['backward']} do not belong together, {what} differ: give two "
                "directions that were trained alike"
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
    if any(name.startswith(f"{SHARED}.") for model in models.values() for name in model.output_layer.weights or {}):
        print("both directions share an output layer of this kind, and two runs have two: it is left out")
        return None
    outputs = {direction: output_weights(model, direction) for direction, model in models.items()}
    try:
        check_weights(outputs["backward"], outputs["forward"])
    except InputError as error:
        forward, backward = (models[direction].path for direction in DIRECTIONS)
        raise InputError(
            f"{backward}: heads.safetensors does not fit that of {forward} ({error}): export it again"
        ) from None
    return {f"{direction_name(each)}.{name}": tensor for each in outputs for name, tensor in outputs[each].items()}


def output_weights(model: ModelDirectory, direction: str) -> dict[str, Tensor]:
    """The weights of one direction's output layer by their names in it; an `InputError` where they are not whole."""
    path, weights = model.path, model.output_layer.weights
    if weights is None:
        raise InputError(f"{path} was kept without its output layer (heads.safetensors): export it again")
    directions = [name.partition(".")[0] for name in weights]
    known = {direction_name(each) for each in model.encoder.directions}
    if not set(directions) <= known or direction_name(direction) not in directions:
        raise InputError(f"{path}: heads.safetensors does not fit the directions in config.json: export it again")
    prefix = f"{direction_name(direction)}."
    return {name.removeprefix(prefix): each for name, each in weights.items() if name.startswith(prefix)}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pretrain.join", description=__doc__.split("\n")[0])
    parser.add_argument("forward", help="run or model directory with the forward direction")
    parser.add_argument("backward", help="run or model directory with the backward direction")
    parser.add_argument("output", help="the model directory to write")
    arguments = parser.parse_args(argv)
    return run_command(lambda: join(arguments.forward, arguments.backward, arguments.output))


if __name__ == "__main__":
    sys.exit(main())
