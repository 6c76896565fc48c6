"""Imported models: an encoder and a character CNN of another tool become a model directory."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmoc.corpus import BEGIN, END
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.encoders.lstm import LstmSizes
from elmoc.files.writing import require_space
from elmoc.model_directory import ModelDirectory, OutputLayerRecord, write_model_directory
from elmoc.word_vectors.character_cnn import FILE_NAME, CharacterCnnVectors, StoredCharacterCnn
from elmoc.word_vectors.sources import VectorSource
from elmoc.word_vectors.transform import VectorTransform


@dataclass(frozen=True)
class Weight:
    """A tensor of another tool, and what we have for it.

    theirs: its name there.
    shape: its shape there.
    ours: the names of our tensors.
    read: from their tensor to ours.
    """

    theirs: str
    shape: tuple[int, ...]
    ours: tuple[str, ...]
    read: Callable[[Tensor], tuple[Tensor, ...]]


def our_tensors(table: Iterable[Weight], theirs: Callable[[Weight], Tensor]) -> dict[str, Tensor]:
    """Our tensors by name, each a copy; `theirs` gives the tensor of a row of the table."""
    ours: dict[str, Tensor] = {}
    for weight in table:
        tensors = weight.read(theirs(weight))
        ours.update(
            (name, tensor.clone(memory_format=torch.contiguous_format))
            for name, tensor in zip(weight.ours, tensors, strict=True)
        )
    return ours


@dataclass(frozen=True)
class ImportedModel:
    """What was read.

    source: where it was read from, as errors call it.
    sizes: of the encoder.
    weights: of the encoder, by their names in model directories.
    character_cnn: its word vectors.
    record: what the model directory says of its origin.
    """

    source: str
    sizes: LstmSizes
    weights: Mapping[str, Tensor]
    character_cnn: StoredCharacterCnn
    record: Mapping[str, Any]

    def write(self, path: Path | str) -> None:
        """Write the model directory. Raises `InputError` where parts of the model do not fit each other."""
        vectors = CharacterCnnVectors(self.character_cnn, origin=self.source)
        with torch.device("meta"):
            encoder = BidirectionalEncoder(EncoderConfig(self.sizes, vectors.size))
        encoder.load_weights(self.weights, assign=True)
        tensors = (*self.weights.values(), *self.character_cnn.weights.values())
        require_space(path, sum(tensor.nbytes for tensor in tensors))
        write_model_directory(
            path,
            ModelDirectory(
                encoder=encoder,
                output_layer=OutputLayerRecord({"kind": "none"}, None),
                transform=VectorTransform(boundary=vectors.lookup([BEGIN, END])),
                word_vectors=VectorSource(FILE_NAME, vectors.fingerprint, vectors.size, "none"),
                training={"imported": dict(self.record)},
                stored_vectors=self.character_cnn,
            ),
        )


def lstm_sizes(
    *,
    projection: int,
    cell: int,
    layers: int,
    cell_clip: float | None,
    projection_clip: float | None,
    residual: bool,
) -> LstmSizes:
    """The settings of the original ELMo's encoder; a clip of null or 0 is none."""
    return LstmSizes(
        projection_size=projection,
        cell_size=cell,
        layers=layers,
        cell_clip=cell_clip or 0.0,
        projection_clip=projection_clip or 0.0,
        residual=residual,
        layer_norm=False,
        input_layer="identity",
    )
