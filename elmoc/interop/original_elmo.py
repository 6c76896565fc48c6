"""Original ELMo: the options and weights of bilm-tf and AllenNLP, read into a model
directory and written from one.

`weight_table` has every tensor of a `weights.hdf5` beside ours; import and export both
go by it.
Source: Peters et al. 2018; bilm-tf (`bilm/model.py`, `bilm/training.py`), AllenNLP
(`allennlp/modules/elmo.py`).
"""

import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor

from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import direction_name
from elmoc.encoders.lstm import LstmSizes
from elmoc.errors import InputError, reading
from elmoc.files.hdf5 import CheckedFile
from elmoc.files.records import read_json, write_json
from elmoc.files.writing import atomic_path, refuse_existing
from elmoc.interop.imported import ImportedModel, Weight, lstm_sizes, our_tensors
from elmoc.model_directory import read_model_directory
from elmoc.settings import convert
from elmoc.word_vectors.character_cnn import (
    UTF8,
    UTF8_SIZE,
    CharacterCnnConfig,
    CharacterCnnRecord,
    CharacterCnnVectors,
)

# What has to be so where options say it, by the path of the key: any other value would
# give other numbers. For ids of characters 261 is said by training, and 262 where id 0
# is counted, which pads sentences and has no row in the weights.
_NEEDED: dict[str, tuple[Any, ...]] = {
    "bidirectional": (True,),
    "reverse": (False,),
    "char_cnn.n_characters": (261, 262),
    "char_cnn.projection_after_highway": (True,),
}
# The keys of the sections that are about the network and are read, and those that are
# about training alone.
_READ = {
    "char_cnn": (
        "activation",
        "embedding",
        "filters",
        "max_characters_per_token",
        "n_highway",
    ),
    "lstm": (
        "cell_clip",
        "dim",
        "n_layers",
        "proj_clip",
        "projection_dim",
        "use_skip_connections",
    ),
}
_OF_TRAINING = ("dropout", "keep_prob")


def read_original_elmo(options: Path | str, weights: Path | str) -> ImportedModel:
    """Read a model of bilm-tf or AllenNLP; an `InputError` where options and weights
    are damaged or do not fit.
    """
    content = read_json(options)
    with reading(weights), CheckedFile(weights) as file:
        names: list[str] = []
        file.file.visit(names.append)
        kinds = {
            name: h5py.h5o.get_info(file.file.id, name.encode()).type for name in names
        }
        names = [name for name in names if kinds[name] == h5py.h5o.TYPE_DATASET]
        theirs = {name: torch.from_numpy(np.array(file.read(name))) for name in names}
    with reading(options):
        cnn, lstm = _sizes(
            content, projection="CNN_proj/W_proj" in theirs, where=str(options)
        )
    with reading(weights):
        ours = our_tensors(weight_table(cnn, lstm), theirs)
    of_directions = tuple(f"{direction_name(direction)}." for direction in DIRECTIONS)
    encoder = {
        name: tensor for name, tensor in ours.items() if name.startswith(of_directions)
    }
    kept = {
        name: encoder.pop(name)
        for name in list(encoder)
        if name.endswith(".forget_bias")
    }
    cnn_weights = {
        name: tensor
        for name, tensor in ours.items()
        if not name.startswith(of_directions)
    }
    vectors = CharacterCnnVectors(
        CharacterCnnRecord(cnn, UTF8), cnn_weights, kept=kept, origin=str(weights)
    )
    return ImportedModel(
        str(weights),
        lstm,
        encoder,
        vectors,
        {"from": "bilm-tf or AllenNLP", "options": content},
    )


def find_original_elmo(directory: Path | str) -> tuple[Path, Path] | None:
    """The options and weights of the model in a directory, by the ends of their names;
    None where there is not one.
    """
    options, weights = (
        list(Path(directory).glob(f"*{name}"))
        for name in ("options.json", "weights.hdf5")
    )
    return (options[0], weights[0]) if len(options) == len(weights) == 1 else None


def _sizes(
    content: Any, *, projection: bool, where: str
) -> tuple[CharacterCnnConfig, LstmSizes]:
    """Our sizes from the content of `options.json`.

    Its other keys are accepted where they are about training, or switch something off;
    else they are refused by name.
    """
    theirs = content["char_cnn"]
    encoder = content["lstm"]
    values = {
        **content,
        **{
            f"{name}.{key}": each
            for name in _READ
            for key, each in content[name].items()
        },
    }
    for path, value in values.items():
        section, _, key = path.rpartition(".")
        if value not in _NEEDED.get(path, (value,)):
            raise InputError(
                f"{path} is {json.dumps(value)}: only models with {json.dumps(_NEEDED[path][0])} are read"
            )
        if (
            section
            and value
            and path not in _NEEDED
            and key not in (*_READ[section], *_OF_TRAINING)
        ):
            raise InputError(
                f"unknown key {path}: its network may be another one (known: {', '.join(_READ[section])})"
            )
    lstm = lstm_sizes(
        encoder, residual=encoder.get("use_skip_connections") or False, where=where
    )
    sizes = {
        "projection_size": lstm.projection_size,
        "characters": UTF8_SIZE,
        "character_size": theirs["embedding"]["dim"],
        "max_characters_per_token": theirs["max_characters_per_token"],
        "filters": theirs["filters"],
        "activation": theirs["activation"],
        "highways": theirs.get("n_highway") or 0,
        "projection": projection,
    }
    return convert(sizes, CharacterCnnConfig, where=where), lstm


def weight_table(cnn: CharacterCnnConfig, lstm: LstmSizes) -> list[Weight]:
    """Their tensors and ours, of models of these sizes.

    Ours are the names of `CharacterCnn` and of model directories. A kernel of theirs is
    the transpose of a weight of ours, their W_0 is W_x and W_h one above the other, and
    their gates are in the order i, g, f, o. They add 1 to the bias of the forget gate
    when they run. As that loses its last digits, the bias is kept as it was, too.
    """
    filters = cnn.filter_count
    cell = lstm.cell_size
    projection = lstm.projection_size
    weights = [
        Weight(
            "char_embed", (cnn.characters, cnn.character_size), ("characters.weight",)
        )
    ]
    for index, (width, number) in enumerate(cnn.filters):
        shape = (1, width, cnn.character_size, number)
        name = f"convolutions.{index}"
        weights.append(
            Weight(
                f"CNN/W_cnn_{index}",
                shape,
                (f"{name}.weight",),
                lambda theirs: (
                    theirs.squeeze(0).permute(2, 1, 0),
                ),  # [1, width, D, filters] → [filters, D, width]
                lambda ours: ours.permute(2, 1, 0).unsqueeze(0),
            )
        )
        weights.append(Weight(f"CNN/b_cnn_{index}", (number,), (f"{name}.bias",)))
    for index in range(cnn.highways):
        for gate in ("transform", "carry"):
            name = f"highways.{index}.{gate}"
            weights.append(
                _transposed(
                    f"CNN_high_{index}/W_{gate}", (filters, filters), f"{name}.weight"
                )
            )
            weights.append(
                Weight(f"CNN_high_{index}/b_{gate}", (filters,), (f"{name}.bias",))
            )
    if cnn.projection:
        weights.append(
            _transposed("CNN_proj/W_proj", (filters, projection), "projection.weight")
        )
        weights.append(Weight("CNN_proj/b_proj", (projection,), ("projection.bias",)))
    for number, direction in enumerate(DIRECTIONS):
        for index in range(lstm.layers):
            theirs = f"RNN_{number}/RNN/MultiRNNCell/Cell{index}/LSTMCell"
            ours = f"{direction_name(direction)}.layers.{index}"
            products = (f"{ours}.input_weight", f"{ours}.hidden_weight")
            read = partial(_read_product, inputs=projection)
            weights.append(
                Weight(
                    f"{theirs}/W_0",
                    (2 * projection, 4 * cell),
                    products,
                    read,
                    _write_product,
                )
            )
            bias = (f"{ours}.bias", f"{ours}.forget_bias")
            weights.append(
                Weight(f"{theirs}/B", (4 * cell,), bias, _read_bias, _write_bias)
            )
            weights.append(
                _transposed(
                    f"{theirs}/W_P_0", (cell, projection), f"{ours}.projection_weight"
                )
            )
    return weights


def _transposed(theirs: str, shape: tuple[int, ...], ours: str) -> Weight:
    return Weight(
        theirs, shape, (ours,), lambda tensor: (tensor.T,), lambda tensor: tensor.T
    )


def _exchanged_gates(values: Tensor) -> Tensor:
    """[…, 4C] with the gates in the order i, g, f, o → i, f, g, o, or the other way."""
    first, second, third, fourth = values.chunk(4, dim=-1)
    return torch.cat([first, third, second, fourth], dim=-1)


def _read_product(theirs: Tensor, *, inputs: int) -> tuple[Tensor, Tensor]:
    ours = _exchanged_gates(theirs)  # [2P, 4C]
    return ours[:inputs].T, ours[inputs:].T


def _write_product(input_weight: Tensor, hidden_weight: Tensor) -> Tensor:
    return _exchanged_gates(torch.cat([input_weight.T, hidden_weight.T]))


def _read_bias(theirs: Tensor) -> tuple[Tensor, Tensor]:
    i, g, f, o = theirs.chunk(4)
    return torch.cat([i, f + 1, g, o]), f


def _write_bias(bias: Tensor, forget_bias: Tensor | None) -> Tensor:
    i, f, g, o = bias.chunk(4)
    theirs = f - 1
    if forget_bias is not None and forget_bias.shape == f.shape:
        theirs = torch.where(
            forget_bias + 1 == f, forget_bias, theirs
        )  # what training has not changed since
    return torch.cat([i, g, theirs, o])


def export_original_elmo(
    model_path: Path | str, options: Path | str, weights: Path | str
) -> None:
    """Write a model directory as the files of bilm-tf and AllenNLP, which must not be
    there yet.
    """
    refuse_existing(options)
    model = read_model_directory(model_path)
    sizes = model.encoder.config.sizes
    stored = model.read_stored_vectors()
    if not (
        isinstance(stored, CharacterCnnVectors)
        and stored.record.spelling == UTF8
        and isinstance(sizes, LstmSizes)
        and not sizes.layer_norm
        and sizes.input_layer == "identity"
        and model.word_vectors.post_processing == "none"
        and set(model.encoder.directions) == set(DIRECTIONS)
    ):
        raise InputError(
            f"{model_path} cannot be written as an original ELMo, which has two directions of LSTMs without layer "
            "normalisation, and a character CNN over bytes: export an imported model, or one trained by "
            "pretrain/configs/elmo.toml"
        )
    network = stored.record.network
    ours = {**stored.weights, **stored.kept, **model.encoder.weights()}
    content = io.BytesIO()  # HDF5's library does not survive a full disk
    with h5py.File(content, "w") as file:
        for weight in weight_table(network, sizes):
            tensor = weight.write(*map(ours.get, weight.ours))
            file.create_dataset(
                weight.theirs,
                data=np.ascontiguousarray(tensor.numpy()),
                track_times=False,
            )
    with atomic_path(weights) as partial_path:
        refuse_existing(weights)
        partial_path.write_bytes(content.getbuffer())
    write_json(
        options, _options(network, sizes)
    )  # last: where there are options, both files are whole


def _options(cnn: CharacterCnnConfig, lstm: LstmSizes) -> dict[str, Any]:
    """The content of `options.json`."""
    return {
        "char_cnn": {
            "activation": cnn.activation,
            "embedding": {"dim": cnn.character_size},
            "filters": cnn.filters,
            "max_characters_per_token": cnn.max_characters_per_token,
            "n_characters": 262,
            "n_highway": cnn.highways,
        },
        "lstm": {
            "dim": lstm.cell_size,
            "n_layers": lstm.layers,
            "projection_dim": lstm.projection_size,
            "cell_clip": lstm.cell_clip or None,
            "proj_clip": lstm.projection_clip or None,
            "use_skip_connections": lstm.residual,
        },
    }
