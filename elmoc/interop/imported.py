"""Imported models: how the weights of another tool become an encoder and a character
CNN in a model directory.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from elmoc.corpus import BEGIN, END
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.encoders.lstm import LstmSizes
from elmoc.model_directory import ModelDirectory, OutputLayerRecord
from elmoc.settings import convert
from elmoc.weights import check_finite
from elmoc.word_vectors.character_cnn import FILE_NAME, CharacterCnnVectors
from elmoc.word_vectors.sources import VectorSource
from elmoc.word_vectors.transform import VectorTransform


def imported_model(
    sizes: LstmSizes,
    weights: Mapping[str, Tensor],
    vectors: CharacterCnnVectors,
    origin: Mapping[str, Any],
) -> ModelDirectory:
    """A model of another tool, as its directory is to be written.

    Args:
        sizes, weights: of the encoder.
        vectors: its character CNN.
        origin: its record.

    Raises:
        InputError: the weights do not fit.
    """
    with torch.device("meta"):
        encoder = BidirectionalEncoder(EncoderConfig(sizes, vectors.size))
    encoder.load_weights(weights, assign=True)
    source = VectorSource(FILE_NAME, vectors.fingerprint, vectors.size, "none")
    return ModelDirectory(
        encoder=encoder,
        output_layer=OutputLayerRecord({"kind": "none"}, None),
        transform=VectorTransform(vectors.lookup([BEGIN, END])),
        word_vectors=source,
        training={"imported": dict(origin)},
        stored_vectors=vectors,
    )


def copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies of tensors, each with memory of its own; all numbers have to be finite."""
    check_finite(tensors)
    form = torch.contiguous_format
    return {name: tensor.clone(memory_format=form) for name, tensor in tensors.items()}


def lstm_sizes(options: Mapping[str, Any], *, residual: bool, where: str) -> LstmSizes:
    """The settings of the encoder, from the names that both tools have for them.

    Args:
        options: of the encoder.
        residual: whether layers have residual connections.
        where: the file of the options, as errors call it.
    """
    # A clip of null or 0 is none.
    sizes = {
        "projection_size": options["projection_dim"],
        "cell_size": options["dim"],
        "layers": options["n_layers"],
        "cell_clip": options.get("cell_clip") or 0.0,
        "projection_clip": options.get("proj_clip") or 0.0,
        "residual": residual,
        "layer_norm": False,
        "input_layer": "identity",
    }
    return convert(sizes, LstmSizes, where=where)
