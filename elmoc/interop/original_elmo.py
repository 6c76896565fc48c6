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
from itertools import product
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

# The values that options may have, by the path of the key: any other would give other
# numbers. The number of characters is 261 in training, and 262 where id 0 is counted,
# which pads sentences and has no row in the weights.
_NEEDED: dict[str, tuple[Any, ...]] = {
    "bidirectional": (True,),
    "reverse": (False,),
    "char_cnn.n_characters": (261, 262),
    "char_cnn.projection_after_highway": (True,),
}
# The keys of each section that are about the network and are read, and the keys that
# are about training alone.
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
    """Read a model of bilm-tf or AllenNLP.

    Raises:
        InputError: options or weights are damaged, or do not fit each other.
    """
    content = read_json(options)
    with reading(weights), CheckedFile(weights) as file:
        names: list[str] = []
        file.file.visit(names.append)
        theirs = {}
        for name in names:
            kind = h5py.h5o.get_info(file.file.id, name.encode()).type
            if kind == h5py.h5o.TYPE_DATASET:
                theirs[name] = torch.from_numpy(np.array(file.read(name)))
    projection = "CNN_proj/W_proj" in theirs
    with reading(options):
        cnn, lstm = _sizes(content, projection=projection, where=str(options))
    with reading(weights):
        ours = our_tensors(weight_table(cnn, lstm), theirs)
    encoder = {}
    cnn_weights = {}
    kept = {}
    directions = tuple(f"{direction_name(direction)}." for direction in DIRECTIONS)
    for name, tensor in ours.items():
        if name.endswith(".forget_bias"):
            kept[name] = tensor
        elif name.startswith(directions):
            encoder[name] = tensor
        else:
            cnn_weights[name] = tensor
    record = CharacterCnnRecord(cnn, UTF8)
    return ImportedModel(
        source=str(weights),
        sizes=lstm,
        weights=encoder,
        character_cnn=CharacterCnnVectors(
            record, cnn_weights, kept=kept, origin=str(weights)
        ),
        record={"from": "bilm-tf or AllenNLP", "options": content},
    )


def find_original_elmo(directory: Path | str) -> tuple[Path, Path] | None:
    """The options and weights of the model in a directory, by the ends of their names;
    None where it does not have one of each.
    """
    options = list(Path(directory).glob("*options.json"))
    weights = list(Path(directory).glob("*weights.hdf5"))
    if len(options) == len(weights) == 1:
        return options[0], weights[0]
    return None


def _sizes(
    content: Any, *, projection: bool, where: str
) -> tuple[CharacterCnnConfig, LstmSizes]:
    """Our sizes from the content of `options.json`.

    Other keys than those of the network are accepted where they are about training, or
    switch something off.

    Raises:
        InputError: names a key that is not accepted.
    """
    theirs = content["char_cnn"]
    encoder = content["lstm"]
    values = dict(content)
    for section, read in _READ.items():
        for key, value in content[section].items():
            values[f"{section}.{key}"] = value
            needed = f"{section}.{key}" in _NEEDED
            if value and not needed and key not in read and key not in _OF_TRAINING:
                raise InputError(
                    f"unknown key {section}.{key}: its network may be another one "
                    f"(known: {', '.join(read)})"
                )
    for path, possible in _NEEDED.items():
        if path in values and values[path] not in possible:
            raise InputError(
                f"{path} is {json.dumps(values[path])}: only models with "
                f"{json.dumps(possible[0])} are read"
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
    size = cnn.character_size
    cell = lstm.cell_size
    projection = lstm.projection_size
    table = []

    def add(theirs: str, ours: str, *shape: int) -> None:
        table.append(Weight(theirs, shape, (ours,)))

    def add_transposed(theirs: str, ours: str, *shape: int) -> None:
        table.append(Weight(theirs, shape, (ours,), lambda x: (x.T,), lambda x: x.T))

    add("char_embed", "characters.weight", cnn.characters, size)
    for index, (width, number) in enumerate(cnn.filters):
        # theirs [1, width, D, filters], ours [filters, D, width]
        table.append(
            Weight(
                f"CNN/W_cnn_{index}",
                (1, width, size, number),
                (f"convolutions.{index}.weight",),
                lambda theirs: (theirs.squeeze(0).permute(2, 1, 0),),
                lambda ours: ours.permute(2, 1, 0).unsqueeze(0),
            )
        )
        add(f"CNN/b_cnn_{index}", f"convolutions.{index}.bias", number)
    for index, gate in product(range(cnn.highways), ("transform", "carry")):
        ours = f"highways.{index}.{gate}"
        theirs = f"CNN_high_{index}"
        add_transposed(f"{theirs}/W_{gate}", f"{ours}.weight", filters, filters)
        add(f"{theirs}/b_{gate}", f"{ours}.bias", filters)
    if cnn.projection:
        add_transposed("CNN_proj/W_proj", "projection.weight", filters, projection)
        add("CNN_proj/b_proj", "projection.bias", projection)
    read = partial(_read_product, inputs=projection)
    for (number, direction), index in product(
        enumerate(DIRECTIONS), range(lstm.layers)
    ):
        theirs = f"RNN_{number}/RNN/MultiRNNCell/Cell{index}/LSTMCell"
        ours = f"{direction_name(direction)}.layers.{index}"
        shape = (2 * projection, 4 * cell)
        products = (f"{ours}.input_weight", f"{ours}.hidden_weight")
        table.append(Weight(f"{theirs}/W_0", shape, products, read, _write_product))
        biases = (f"{ours}.bias", f"{ours}.forget_bias")
        table.append(
            Weight(f"{theirs}/B", (4 * cell,), biases, _read_bias, _write_bias)
        )
        name = f"{ours}.projection_weight"
        add_transposed(f"{theirs}/W_P_0", name, cell, projection)
    return table


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
        # a bias that training has not changed since
        theirs = torch.where(forget_bias + 1 == f, forget_bias, theirs)
    return torch.cat([i, g, theirs, o])


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
    model = read_model_directory(model_path)
    sizes = model.encoder.config.sizes
    stored = model.read_stored_vectors()
    transform = model.word_vectors.post_processing
    is_bare = sizes.input_layer == "identity" and transform == "none"
    both = set(model.encoder.directions) == set(DIRECTIONS)
    if (
        not isinstance(stored, CharacterCnnVectors)
        or stored.record.spelling != UTF8
        or not isinstance(sizes, LstmSizes)
        or sizes.layer_norm
        or not (is_bare and both)
    ):
        raise InputError(
            f"{model_path} cannot be written as an original ELMo, which has two "
            "directions of LSTMs without layer normalisation, and a character CNN over "
            "bytes: export an imported model, or one trained by "
            "pretrain/configs/elmo.toml"
        )
    network = stored.record.network
    ours = dict(stored.weights) | dict(stored.kept) | model.encoder.weights()
    # HDF5's library does not survive a full disk, so the file is made in memory
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        for weight in weight_table(network, sizes):
            tensor = weight.write(*map(ours.get, weight.ours))
            array = np.ascontiguousarray(tensor.numpy())
            file.create_dataset(weight.theirs, data=array, track_times=False)
    with atomic_path(weights) as partial_path:
        refuse_existing(weights)
        partial_path.write_bytes(content.getbuffer())
    # the last: where there are options, both files are whole
    write_json(options, _options(network, sizes))


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
