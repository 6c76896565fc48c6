"""Imported models: how the weights of another tool become an encoder and a character
CNN in a model directory.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmoc.corpus import BEGIN, END
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.encoders.lstm import LstmSizes
from elmoc.errors import reading
from elmoc.model_directory import (
    ModelDirectory,
    OutputLayerRecord,
    write_model_directory,
)
from elmoc.settings import convert
from elmoc.weights import check_finite, check_weights
from elmoc.word_vectors.character_cnn import FILE_NAME, CharacterCnnVectors
from elmoc.word_vectors.sources import VectorSource
from elmoc.word_vectors.transform import VectorTransform


@dataclass(frozen=True)
class Weight:
    """A tensor of another tool, and our tensors for it.

    theirs: its name.
    shape: its shape.
    ours: the names of our tensors.
    read: from their tensor to ours.
    write: from ours to theirs; a missing tensor of ours is None.
    """

    theirs: str
    shape: tuple[int, ...]
    ours: tuple[str, ...]
    read: Callable[[Tensor], tuple[Tensor, ...]] = lambda theirs: (theirs,)
    write: Callable[..., Tensor] = lambda ours: ours


def our_tensors(
    table: Iterable[Weight], theirs: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Our tensors by name, each a copy.

    Args:
        table: all tensors.
        theirs: by name.

    Raises:
        InputError: theirs are others than in the table, or not finite.
    """
    table = list(table)
    expected = {each.theirs: torch.empty(each.shape, device="meta") for each in table}
    check_weights(theirs, expected)
    check_finite(theirs)
    ours = {}
    for each in table:
        read = each.read(theirs[each.theirs])
        for name, tensor in zip(each.ours, read, strict=True):
            ours[name] = tensor.clone(memory_format=torch.contiguous_format)
    return ours


@dataclass(frozen=True)
class ImportedModel:
    """A model of another tool.

    source: the file or folder that it was read from, as errors call it.
    sizes, weights: of the encoder.
    character_cnn: its word vectors.
    record: of its origin, for the model directory.
    """

    source: str
    sizes: LstmSizes
    weights: Mapping[str, Tensor]
    character_cnn: CharacterCnnVectors
    record: Mapping[str, Any]

    def write(self, path: Path | str) -> None:
        """Write the model directory."""
        vectors = self.character_cnn
        with reading(self.source):
            with torch.device("meta"):
                encoder = BidirectionalEncoder(EncoderConfig(self.sizes, vectors.size))
            encoder.load_weights(self.weights, assign=True)
            boundary = vectors.lookup([BEGIN, END])
        model = ModelDirectory(
            encoder=encoder,
            output_layer=OutputLayerRecord({"kind": "none"}, None),
            transform=VectorTransform(boundary=boundary),
            word_vectors=VectorSource(
                FILE_NAME, vectors.fingerprint, vectors.size, "none"
            ),
            training={"imported": dict(self.record)},
            stored_vectors=vectors,
        )
        write_model_directory(path, model)


def lstm_sizes(options: Mapping[str, Any], *, residual: bool, where: str) -> LstmSizes:
    """The settings of the encoder, from the names that both tools have for them.

    Args:
        options: of the encoder.
        residual: whether layers have residual connections.
        where: the file of the options, as errors call it.
    """
    # a clip of null or 0 is none
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
