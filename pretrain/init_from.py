"""Going on from a model (`--init-from`): the weights of a model directory that a new
run begins with.
"""

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.errors import InputError, reading, say, warn
from elmoc.model_directory import (
    ModelDirectory,
    OutputLayerRecord,
    read_model_directory,
)
from elmoc.word_vectors.compact import CompactVectors
from elmoc.word_vectors.joined import JoinedVectors
from elmoc.word_vectors.opening import STORED_FILES, read_stored
from elmoc.word_vectors.sources import VectorSource, check_vectors
from elmoc.word_vectors.stored import StoredVectors
from pretrain.config import differences
from pretrain.data.sources import TrainingData
from pretrain.input_layers import InputNetwork
from pretrain.output_layers import OutputLayers

# The weight of the input projection of a direction.
PROJECTION = "input_layer.projection.weight"


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
        encoder: of the run; it gets the weights.
        output_layers: of the run; they get the weights where they are of the same kind.
        record: what tells the output layers apart from others.
        data: whose vector tables the run reads.
        network: makes the word vectors of the run, if any does; it gets the weights.

    Raises:
        InputError: the encoder, the directions or the input vectors differ.
    """
    model = read_model_directory(path)
    vectors = model.word_vectors
    scale = joined_with(vectors, data.inputs.source)
    require_same_encoder(path, encoder, model, is_wider=scale is not None)
    # A network of the run goes on from the model's network; frozen vectors have to be
    # the same.
    if network is None:
        is_same = data.inputs.transform.same_as(model.transform)
        if scale is None and not (is_same and data.inputs.source.same_as(vectors)):
            raise InputError(
                f"--init-from {path}: the table {data.inputs.name} was not made as the "
                f"model's word vectors were ({vectors.origin}, "
                f"{vectors.post_processing}): make one by build_vectors --like"
            )
    else:
        stored = model.read_stored_vectors()
        is_alike = type(stored) is type(network.stored())
        if stored is None or not is_alike or vectors.post_processing != "none":
            raise InputError(
                f"--init-from {path}: the model's word vectors are not from a "
                f"{network.title}: choose its input_layer.kind"
            )
        check_vectors(stored, vectors)
        network.load(stored)
    # A run of one direction takes its half of a model of two.
    for direction in encoder.directions:
        state = model.encoder.direction(direction).state_dict()
        if scale is not None:
            state[PROJECTION] = widened(state[PROJECTION], scale, data.inputs.size)
        encoder.direction(direction).load_state_dict(state)
    # Output layers for other targets are of no use, and of another width perhaps.
    kept = model.output_layer
    if kept.weights is None or not kept.is_like(OutputLayerRecord(record, None)):
        say(
            f"going on from {path}; it has no output layers for these targets, so they "
            "start anew"
        )
        return model
    with reading(f"{path}: heads.safetensors"):
        output_layers.load_state_dict(
            {
                name: tensor
                for name, tensor in kept.weights.items()
                if name.partition(".")[0] in output_layers
            }
        )
    say(f"going on from {path}")
    return model


def joined_with(vectors: VectorSource, source: VectorSource) -> float | None:
    """The scale of a model's word vectors among those of a table, where these are the
    first of several that were joined, and neither is transformed; else None.
    """
    if not source.origin.endswith(".json"):
        return None
    first = JoinedVectors.read_record(source.origin).parts[0]
    kept = {vectors.post_processing, source.post_processing} == {"none"}
    if not kept or first.fingerprint != vectors.fingerprint:
        return None
    return first.scale


def widened(weight: Tensor, scale: float, size: int) -> Tensor:
    """The input projection [P, size] that makes the same of joined vectors as `weight`
    [P, E] of the first of them alone, before they were scaled: the others begin at 0.
    """
    return nn.functional.pad(weight / scale, (0, size - weight.shape[1]))


def require_same_encoder(
    path: str, encoder: BidirectionalEncoder, model: ModelDirectory, *, is_wider: bool
) -> None:
    """Raise an `InputError` where the encoder of a model has other sizes, or lacks a
    direction. If `is_wider`, ours reads wider vectors.
    """
    # Dropout has no weights: it may be another one now.
    names = ("dropout", "word_vector_size") if is_wider else ("dropout",)
    free: dict[str, Any] = dict.fromkeys(names)
    ours = encoder.config.to_dict() | free
    differing = differences(model.encoder.config.to_dict() | free, ours)
    lacking = set(encoder.directions) - set(model.encoder.directions)
    differing += [f"it lacks the {direction} direction" for direction in lacking]
    if differing:
        raise InputError(
            f"--init-from {path}: the model's encoder is another: "
            f"{', '.join(differing)}"
        )


def read_stored_vectors(
    source: VectorSource, own_model: Path | None, before: Path | StoredVectors | None
) -> StoredVectors | None:
    """The stored vectors that the table of inputs was made from, read now: they may be
    gone when a model is exported.

    A warning is printed where they cannot be found, or have changed.

    Args:
        source: of the table.
        own_model: the model that the run has exported.
        before: the vectors of the model that the run started from.

    Returns:
        None where the table was made from vectors of another kind, or of a teacher,
        which are large, and stay where they are.
    """
    if not source.origin.endswith(".safetensors"):
        return None
    # A model keeps a copy of its vectors, under a name of its own, when the file that
    # they came from is moved.
    places = [own_model / name for name in STORED_FILES] if own_model else []
    if isinstance(before, Path):
        places.append(before)
    copies = filter(Path.is_file, places)
    try:
        stored: StoredVectors = read_stored(next(copies, Path(source.origin)))
        check_vectors(stored, source)
        is_large = isinstance(stored, CompactVectors) and stored.counts is not None
        return None if is_large else stored
    except (InputError, OSError) as error:
        warn(
            f"models of this run will not hold their word vectors ({error}): "
            "use them with --vectors"
        )
        return None
