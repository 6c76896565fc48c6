"""Going on from a model (`--init-from`): the weights of a model directory that a new
run begins with.
"""

import sys
from pathlib import Path
from typing import Any

from elmoc.encoders.bidirectional import BidirectionalEncoder, direction_name
from elmoc.errors import InputError, reading
from elmoc.model_directory import (
    ModelDirectory,
    OutputLayerRecord,
    read_model_directory,
)
from elmoc.word_vectors.opening import read_stored
from elmoc.word_vectors.sources import VectorSource, check_vectors
from elmoc.word_vectors.stored import StoredVectors
from pretrain.data.sources import TrainingData
from pretrain.input_layers import InputNetwork
from pretrain.output_layers import SHARED, OutputLayers


def initialise_from(
    path: str,
    encoder: BidirectionalEncoder,
    output_layers: OutputLayers,
    record: dict[str, Any],
    *,
    data: TrainingData,
    network: InputNetwork | None,
) -> ModelDirectory:
    """Take the weights of a model directory over, and its output layers where these are
    for targets of the same kind.

    The same kind is the same word vectors and kind of transform. Where its numbers
    (mean and matrix) were fitted to this corpus, the output layers start near what they
    have to become.

    Args:
        path: of the model or run directory, which is returned.
        encoder, output_layers, network: of the run, which get its weights; the network
            makes word vectors, if any does.
        record: what tells the output layers apart from others.
        data: whose vector tables the run reads.

    Raises `InputError` when the encoder, the directions or the input vectors differ.
    """
    model = read_model_directory(path)
    ours = encoder.config.to_dict()
    theirs = model.encoder.config.to_dict()
    for name in ours | theirs:
        if name != "dropout" and ours.get(name) != theirs.get(name):
            raise InputError(
                f"--init-from {path}: {name} is {ours.get(name)} here, and {theirs.get(name)} there"
            )
    if not set(encoder.directions) <= set(model.encoder.directions):
        raise InputError(
            f"--init-from {path}: the model has the directions {', '.join(model.encoder.directions)} only"
        )
    if network is not None:
        stored = model.read_stored_vectors()
        if stored is None or model.word_vectors.post_processing != "none":
            raise InputError(
                f"--init-from {path}: the model's word vectors are not from a {network.title}"
            )
        check_vectors(stored, model.word_vectors)
        network.load(stored)
    elif not data.inputs.source.same_as(
        model.word_vectors
    ) or not data.inputs.transform.same_as(model.transform):
        raise InputError(
            f"--init-from {path}: the table {data.inputs.name} was not made as the model's word vectors were "
            f"({model.word_vectors.origin}, {model.word_vectors.post_processing}): make one by build_vectors --like"
        )
    for direction in encoder.directions:
        encoder.direction(direction).load_state_dict(
            model.encoder.direction(direction).state_dict()
        )
    kept = model.output_layer
    if kept.weights is None or not kept.is_like(OutputLayerRecord(record, None)):
        print(
            f"going on from {path}; it has no output layers for these targets, so they start anew"
        )
        return model
    prefixes = (
        f"{SHARED}.",
        *(f"{direction_name(direction)}." for direction in encoder.directions),
    )
    with reading(f"{path}: heads.safetensors"):
        output_layers.load_state_dict(
            {
                name: each
                for name, each in kept.weights.items()
                if name.startswith(prefixes)
            }
        )
    exact = not data.reads_targets or (
        kept.transform is not None and kept.transform.same_as(data.targets.transform)
    )
    print(
        f"going on from {path}, {'as it is' if exact else 'though its targets may have had another transform'}"
    )
    return model


def read_stored_vectors(
    source: VectorSource, own_model: Path | None, before: Path | StoredVectors | None
) -> StoredVectors | None:
    """The stored vectors that the table of inputs was made from, read now: they may be
    gone when a model is exported.

    They are looked for in the models that the run has exported and begun with, and
    where they were. None where the table was made from others. Of vectors that cannot
    be found, or have changed, a warning is printed.
    """
    if not source.origin.endswith(".safetensors"):
        return None
    copies = [
        None if own_model is None else own_model / source.file_name,
        before,
        Path(source.origin),
    ]
    file = next(
        (each for each in copies if isinstance(each, Path) and each.is_file()),
        Path(source.origin),
    )
    try:
        stored: StoredVectors = read_stored(file)
        check_vectors(stored, source)
        return stored
    except (InputError, OSError) as error:
        print(
            f"warning: models of this run will not hold their word vectors ({error}): use them with --vectors",
            file=sys.stderr,
        )
        return None
