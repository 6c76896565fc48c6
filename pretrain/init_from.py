"""Going on from a model (`--init-from`): the weights of a model directory that a new run begins with."""

from elmoc.encoders.bidirectional import BidirectionalEncoder, direction_name
from elmoc.errors import InputError, reading
from elmoc.model_directory import ModelDirectory, OutputLayerRecord, read_model_directory
from elmoc.word_vectors.sources import check_vectors
from pretrain.input_layers import InputNetwork, LexiconTable
from pretrain.output_layers import SHARED, OutputLayers


def initialise_from(
    path: str,
    encoder: BidirectionalEncoder,
    output_layers: OutputLayers,
    record: OutputLayerRecord,
    *,
    inputs: LexiconTable,
    targets: LexiconTable | None,
    input_network: InputNetwork | None = None,
) -> ModelDirectory:
    """Take the weights of a model directory over, and its output layers where these are for targets of the same kind.

    The same kind is the same word vectors and kind of transform. Where its numbers (mean and matrix) were fitted to
    this corpus, the output layers start near what they have to become.

    Args:
        path: of the model or run directory, which is returned.
        encoder, output_layers: which get its weights.
        record: what tells the output layers apart from others.
        inputs, targets: the vector tables of the run; no targets where its output layers read none.
        input_network: of the run, if it trains one; it gets the weights of the model's.

    Raises `InputError` when the encoder, the directions or the input vectors differ.
    """
    model = read_model_directory(path)
    require_same_encoder(path, encoder, model)
    if input_network is not None:
        stored = model.read_stored_vectors()
        if stored is None or model.word_vectors.post_processing != "none":
            raise InputError(f"--init-from {path}: the model reads other vectors than those of a {input_network.title}")
        check_vectors(stored, model.word_vectors)
        input_network.load(stored)
    elif not inputs.source.same_as(model.word_vectors) or not inputs.transform.same_as(model.transform):
        raise InputError(
            f"--init-from {path}: the table {inputs.name} was not made as the model's word vectors were "
            f"({model.word_vectors.origin}, {model.word_vectors.post_processing}): make one by build_vectors --like"
        )
    for direction in encoder.directions:
        encoder.direction(direction).load_state_dict(model.encoder.direction(direction).state_dict())
    kept = model.output_layer
    if kept.weights is None or not kept.is_like(record):
        print(f"going on from {path}; it has no output layers for these targets, so they start anew")
        return model
    prefixes = (f"{SHARED}.", *(f"{direction_name(direction)}." for direction in encoder.directions))
    with reading(f"{path}: heads.safetensors"):
        output_layers.load_state_dict({name: each for name, each in kept.weights.items() if name.startswith(prefixes)})
    exact = targets is None or (kept.transform is not None and kept.transform.same_as(targets.transform))
    print(f"going on from {path}, {'as it is' if exact else 'whose targets may have been processed by other numbers'}")
    return model


def require_same_encoder(path: str, encoder: BidirectionalEncoder, model: ModelDirectory) -> None:
    """Raise an `InputError` when the encoder of a model has other sizes, or lacks a direction; dropout may differ."""
    ours, theirs = encoder.config.to_dict(), model.encoder.config.to_dict()
    differing = [
        f"{name} (here {ours.get(name)}, there {theirs.get(name)})"
        for name in ours | theirs
        if name != "dropout" and ours.get(name) != theirs.get(name)
    ]
    if differing:
        raise InputError(f"--init-from {path}: the encoder has other sizes: {', '.join(differing)}")
    if not set(encoder.directions) <= set(model.encoder.directions):
        raise InputError(f"--init-from {path}: the model has the directions {', '.join(model.encoder.directions)} only")
