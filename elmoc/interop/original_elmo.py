"""Original ELMo: the options and weights of bilm-tf and AllenNLP, read as a model
directory and written from one.

`cnn_table` and `lstm_table` have every tensor of a `weights.hdf5` beside ours; import
and export both go by them.
Source: Peters et al. 2018; bilm-tf (`bilm/model.py`, `bilm/training.py`), AllenNLP
(`allennlp/modules/elmo.py`).
"""

import io
import json
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import torch
from torch import Tensor

from elmoc.corpus import BEGIN, END
from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import (
    BidirectionalEncoder,
    EncoderConfig,
    direction_name,
)
from elmoc.encoders.lstm import LstmSizes
from elmoc.errors import InputError, reading
from elmoc.files.hdf5 import CheckedFile
from elmoc.files.records import read_json, write_json
from elmoc.files.writing import atomic_path, refuse_existing
from elmoc.model_directory import (
    ModelDirectory,
    OutputLayerRecord,
    read_model_directory,
)
from elmoc.settings import convert
from elmoc.weights import check_finite, check_weights, contiguous, prefixed
from elmoc.word_vectors.character_cnn import (
    UTF8,
    UTF8_SIZE,
    CharacterCnnConfig,
    CharacterCnnRecord,
    CharacterCnnVectors,
)
from elmoc.word_vectors.sources import VectorSource
from elmoc.word_vectors.transform import VectorTransform

# The values that options may have, by the path of the key: any other would give other
# numbers. The number of characters is 261 in training, and 262 where id 0 is counted,
# which pads sentences and has no row in the weights.
_NEEDED: dict[str, tuple[Any, ...]] = {
    "bidirectional": (True,),
    "reverse": (False,),
    "char_cnn.n_characters": (261, 262),
    "char_cnn.projection_after_highway": (True,),
}
# The keys of each section that are known. The last two are about training alone.
_KNOWN = {
    "char_cnn": (
        "activation",
        "embedding",
        "filters",
        "max_characters_per_token",
        "n_characters",
        "n_highway",
        "projection_after_highway",
        "dropout",
        "keep_prob",
    ),
    "lstm": (
        "cell_clip",
        "dim",
        "n_layers",
        "proj_clip",
        "projection_dim",
        "use_skip_connections",
        "dropout",
        "keep_prob",
    ),
}


class Weight(NamedTuple):
    """A tensor of theirs, and our tensors for it.

    theirs: its name.
    ours: the names of our tensors.
    read: from their tensor to ours.
    write: from ours to theirs.
    """

    theirs: str
    ours: tuple[str, ...]
    read: Callable[[Tensor], tuple[Tensor, ...]] = lambda theirs: (theirs,)
    write: Callable[..., Tensor] = lambda ours: ours


def read_original_elmo(options: Path | str, weights: Path | str) -> ModelDirectory:
    """Read a model of bilm-tf or AllenNLP.

    Raises:
        InputError: options or weights are damaged, or do not fit each other.
    """
    content = read_json(options)
    with reading(weights), CheckedFile(weights) as file:
        names: list[str] = []
        file.file.visit(names.append)
        theirs = {
            name: torch.from_numpy(np.array(file.read(name)))
            for name in names
            if h5py.h5o.get_info(file.file.id, name.encode()).type
            == h5py.h5o.TYPE_DATASET
        }
        check_finite(theirs)
    with reading(options):
        cnn, lstm = _sizes(content, "CNN_proj/W_proj" in theirs, str(options))
    with reading(weights):
        encoder = _our_tensors(lstm_table(lstm), theirs)
        vectors = CharacterCnnVectors(
            CharacterCnnRecord(cnn, UTF8),
            contiguous(_our_tensors(cnn_table(cnn), theirs)),
            origin=str(weights),
        )
        check_weights(theirs, {})
        return imported_model(lstm, encoder, vectors, "bilm-tf or AllenNLP", content)


def _our_tensors(table: list[Weight], theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Our tensors of a table; theirs are taken out."""
    ours: dict[str, Tensor] = {}
    for weight in table:
        ours |= zip(weight.ours, weight.read(theirs.pop(weight.theirs)), strict=True)
    return ours


def imported_model(
    sizes: LstmSizes,
    weights: Mapping[str, Tensor],
    vectors: CharacterCnnVectors,
    tool: str,
    options: Any,
) -> ModelDirectory:
    """A model of another tool, as its directory is to be written.

    Args:
        sizes, weights: of the encoder.
        vectors: its character CNN.
        tool: its name.
        options: of the model, as the tool has them.

    Raises:
        InputError: the weights do not fit.
    """
    with torch.device("meta"):
        encoder = BidirectionalEncoder(EncoderConfig(sizes, vectors.size))
    encoder.load_weights(contiguous(weights), assign=True)
    return ModelDirectory(
        encoder=encoder,
        output_layer=OutputLayerRecord({"kind": "none"}, None),
        transform=VectorTransform(vectors.lookup([BEGIN, END])),
        word_vectors=VectorSource(
            vectors.file_name, vectors.fingerprint, vectors.size, "none"
        ),
        training={"imported": {"from": tool, "options": options}},
        stored_vectors=vectors,
    )


def lstm_sizes(options: Mapping[str, Any], *, residual: bool, where: str) -> LstmSizes:
    """The settings of the encoder, from the names that both tools have for them.

    Args:
        options: of the encoder.
        residual: whether layers have residual connections.
        where: the file of the options, as errors call it.
    """
    # A clip of null or 0 is none.
    return convert(
        {
            "projection_size": options["projection_dim"],
            "cell_size": options["dim"],
            "layers": options["n_layers"],
            "cell_clip": options.get("cell_clip") or 0.0,
            "projection_clip": options.get("proj_clip") or 0.0,
            "residual": residual,
            "layer_norm": False,
            "input_layer": "identity",
        },
        LstmSizes,
        where=where,
    )


def find_original_elmo(directory: Path | str) -> tuple[Path, Path] | None:
    """The options and weights of the model in a directory, by the ends of their names;
    None where it does not have one of each.
    """
    options = list(Path(directory).glob("*options.json"))
    weights = list(Path(directory).glob("*weights.hdf5"))
    return (options[0], weights[0]) if len(options) == len(weights) == 1 else None


def _sizes(
    content: Any, projection: bool, where: str
) -> tuple[CharacterCnnConfig, LstmSizes]:
    """Our sizes from the content of `options.json`, and whether the CNN ends with a
    projection.

    Other keys than those of the network are accepted where they are about training, or
    switch something off.

    Raises:
        InputError: names a key that is not accepted.
    """
    values = dict(content)
    for section, known in _KNOWN.items():
        values |= prefixed(content[section], f"{section}.")
        for key, value in content[section].items():
            if value and key not in known:
                raise InputError(
                    f"unknown key {section}.{key}: its network may be another one "
                    f"(known: {', '.join(known)})"
                )
    for path, possible in _NEEDED.items():
        if values.get(path, possible[0]) not in possible:
            raise InputError(
                f"{path} is {json.dumps(values[path])}: only models with "
                f"{json.dumps(possible[0])} are read"
            )
    theirs = content["char_cnn"]
    lstm = lstm_sizes(
        content["lstm"],
        residual=content["lstm"].get("use_skip_connections") or False,
        where=where,
    )
    cnn = {
        "projection_size": lstm.projection_size,
        "characters": UTF8_SIZE,
        "character_size": theirs["embedding"]["dim"],
        "max_characters_per_token": theirs["max_characters_per_token"],
        "filters": theirs["filters"],
        "activation": theirs["activation"],
        "highways": theirs.get("n_highway") or 0,
        "projection": projection,
    }
    return convert(cnn, CharacterCnnConfig, where=where), lstm


def cnn_table(cnn: CharacterCnnConfig) -> list[Weight]:
    """Their tensors of a character CNN, and the names of ours in `CharacterCnn`.

    A matrix of theirs is the transpose of ours.
    """
    table = [Weight("char_embed", ("characters.weight",))]
    for index in range(len(cnn.filters)):
        table += [
            Weight(
                f"CNN/W_cnn_{index}",
                (f"convolutions.{index}.weight",),
                # [1, width, D, filters] → [filters, D, width]
                lambda theirs: (theirs.squeeze(0).permute(2, 1, 0),),
                lambda ours: ours.permute(2, 1, 0).unsqueeze(0),
            ),
            Weight(f"CNN/b_cnn_{index}", (f"convolutions.{index}.bias",)),
        ]
    linear = {
        f"CNN_high_{index}/{{}}_{gate}": f"highways.{index}.{gate}"
        for index, gate in product(range(cnn.highways), ("transform", "carry"))
    }
    if cnn.projection:
        linear["CNN_proj/{}_proj"] = "projection"
    for theirs, ours in linear.items():
        table += [
            _transposed(theirs.format("W"), f"{ours}.weight"),
            Weight(theirs.format("b"), (f"{ours}.bias",)),
        ]
    return table


def lstm_table(lstm: LstmSizes) -> list[Weight]:
    """Their tensors of an encoder, and the names of ours in model directories.

    Their W_0 is W_x and W_h one above the other, transposed, with the gates in the
    order i, g, f, o. They add 1 to the bias of the forget gate when they run.
    """
    table = []
    directions = enumerate(DIRECTIONS)
    for (number, direction), index in product(directions, range(lstm.layers)):
        theirs = f"RNN_{number}/RNN/MultiRNNCell/Cell{index}/LSTMCell"
        ours = f"{direction_name(direction)}.layers.{index}"
        products = (f"{ours}.input_weight", f"{ours}.hidden_weight")
        table += [
            Weight(f"{theirs}/W_0", products, _read_product, _write_product),
            Weight(f"{theirs}/B", (f"{ours}.bias",), _read_bias, _write_bias),
            _transposed(f"{theirs}/W_P_0", f"{ours}.projection_weight"),
        ]
    return table


def _transposed(theirs: str, ours: str) -> Weight:
    return Weight(theirs, (ours,), lambda x: (x.T,), lambda x: x.T)


def _exchanged_gates(values: Tensor) -> Tensor:
    """[…, 4C] with the gates in the order i, g, f, o → i, f, g, o, or the other way."""
    first, second, third, fourth = values.chunk(4, dim=-1)
    return torch.cat([first, third, second, fourth], dim=-1)


def _read_product(theirs: Tensor) -> tuple[Tensor, ...]:
    """[2P, 4C] → [4C, P] twice."""
    return _exchanged_gates(theirs).T.chunk(2, dim=1)


def _write_product(input_weight: Tensor, hidden_weight: Tensor) -> Tensor:
    return _exchanged_gates(torch.cat([input_weight.T, hidden_weight.T]))


def _read_bias(theirs: Tensor) -> tuple[Tensor]:
    i, g, f, o = theirs.chunk(4)
    return (torch.cat([i, f + 1, g, o]),)


def _write_bias(ours: Tensor) -> Tensor:
    i, f, g, o = ours.chunk(4)
    return torch.cat([i, g, f - 1, o])


def export_original_elmo(
    model_path: Path | str, options: Path | str, weights: Path | str
) -> None:
    """Write a model directory as the files of bilm-tf and AllenNLP.

    Args:
        model_path: the model directory.
        options, weights: the files, which must not be there yet.

    Raises:
        InputError: the model is of another kind.
    """
    refuse_existing(options)
    model = read_model_directory(model_path, output_layers=False)
    sizes = model.encoder.config.sizes
    stored = model.read_stored_vectors()
    if (
        not isinstance(stored, CharacterCnnVectors)
        or stored.record.spelling != UTF8
        or not isinstance(sizes, LstmSizes)
        or sizes.layer_norm
        or sizes.input_layer != "identity"
        or model.word_vectors.post_processing != "none"
        or set(model.encoder.directions) != set(DIRECTIONS)
    ):
        raise InputError(
            f"{model_path} cannot be written as an original ELMo, which has two "
            "directions of LSTMs without layer normalisation, and a character CNN over "
            "bytes: export an imported model, or one trained by "
            "pretrain/configs/elmo.toml"
        )
    network = stored.record.network
    if network.projection and network.filter_count == sizes.projection_size:
        raise InputError(
            f"{model_path} projects {network.filter_count} filters to as many numbers: "
            "bilm-tf would leave out the projection"
        )
    ours = {**stored.weights, **model.encoder.weights()}
    # HDF5's library does not survive a full disk, so the file is made in memory.
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        for weight in cnn_table(network) + lstm_table(sizes):
            tensor = weight.write(*(ours[name] for name in weight.ours)).contiguous()
            file.create_dataset(weight.theirs, data=tensor.numpy(), track_times=False)
    with atomic_path(weights, checksum=True) as partial_path:
        refuse_existing(weights)
        partial_path.write_bytes(content.getbuffer())
    # The last: where there are options, both files are whole.
    write_json(
        options,
        {
            "char_cnn": {
                "activation": network.activation,
                "embedding": {"dim": network.character_size},
                "filters": network.filters,
                "max_characters_per_token": network.max_characters_per_token,
                "n_characters": 262,
                "n_highway": network.highways,
            },
            "lstm": {
                "dim": sizes.cell_size,
                "n_layers": sizes.layers,
                "projection_dim": sizes.projection_size,
                "cell_clip": sizes.cell_clip or None,
                "proj_clip": sizes.projection_clip or None,
                "use_skip_connections": sizes.residual,
            },
        },
    )
