"""ELMoForManyLangs: the directories of its models, read into a model directory.

A directory holds `config.json` (of the training, which names the config of the model),
`char.dic` and `word.dic` (the lexicons), `token_embedder.pkl` and `encoder.pkl` (the
weights). These are read as tensors only; no other object of a pickle is made. Source:
Che et al. 2018; the package `elmoformanylangs` (MIT licence), release 0.0.4.post2.
"""

import tarfile
import zipfile
from contextlib import suppress
from itertools import product
from pathlib import Path, PurePath
from typing import Any

import torch
from torch import Tensor

from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import direction_name
from elmoc.encoders.lstm import LstmSizes
from elmoc.errors import InputError, reading
from elmoc.files.checksums import check_archive
from elmoc.files.compression import require_file
from elmoc.files.records import read_json
from elmoc.files.text import read_lines
from elmoc.interop.imported import ImportedModel, Weight, lstm_sizes, our_tensors
from elmoc.settings import convert
from elmoc.word_vectors.character_cnn import (
    CHARACTERS,
    LEXICON,
    WORDS,
    CharacterCnnConfig,
    CharacterCnnRecord,
    CharacterCnnVectors,
)

# The configs that are in the package, and not in the directories of the published
# models; both say the same.
_PUBLISHED = ("cnn_50_100_512_4096_sample.json", "cnn_0_100_512_4096_sample.json")
_PUBLISHED_CONFIG = {
    "encoder": {
        "name": "elmo",
        "projection_dim": 512,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 4096,
        "n_layers": 2,
    },
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2,
        "word_dim": 100,
        "char_dim": 50,
        "max_characters_per_token": 50,
    },
}


def read_many_langs(directory: Path | str) -> ImportedModel:
    """Read a model of ELMoForManyLangs.

    Raises:
        InputError: a file is damaged, or the network is another one.
    """
    folder = Path(directory)
    where, config = _read_config(folder)
    with reading(where):
        words = config["token_embedder"]
        encoder = config["encoder"]
        names = f"{words['name']} and {encoder['name']}"
        if names.lower() != "cnn and elmo":
            raise InputError(
                f"token_embedder and encoder are {names}, not cnn and elmo"
            )
        # a size of 0 says that words are not read in this way
        lexicons = {}
        if words["char_dim"]:
            lexicons[CHARACTERS] = _read_lexicon(folder / "char.dic")
        if words["word_dim"]:
            lexicons[WORDS] = _read_lexicon(folder / "word.dic")
    tensors = _read_tensors(folder / "token_embedder.pkl")
    with reading(folder / "token_embedder.pkl"):
        characters = len(tensors.get("char_emb_layer.embedding.weight", ()))
        whole_words = len(tensors.get("word_emb_layer.embedding.weight", ()))
    with reading(where):
        lstm = lstm_sizes(encoder, residual=True, where=where)
        sizes = {
            "projection_size": lstm.projection_size,
            "characters": characters,
            "character_size": words["char_dim"],
            "max_characters_per_token": words["max_characters_per_token"],
            "filters": words["filters"] if words["char_dim"] else (),
            "activation": words.get("activation", "relu"),
            "highways": words.get("n_highway", 0) if words["char_dim"] else 0,
            "projection": True,
            "words": whole_words,
            "word_size": words["word_dim"],
        }
        cnn = convert(sizes, CharacterCnnConfig, where=where)
    with reading(folder / "token_embedder.pkl"):
        weights = our_tensors(token_table(cnn), tensors)
    with reading(folder / "encoder.pkl"):
        tensors = _read_tensors(folder / "encoder.pkl")
        encoder_weights = our_tensors(encoder_table(lstm), tensors)
    record = CharacterCnnRecord(cnn, LEXICON)
    return ImportedModel(
        source=str(folder),
        sizes=lstm,
        weights=encoder_weights,
        character_cnn=CharacterCnnVectors(
            record, weights, lexicons=lexicons, origin=str(folder)
        ),
        record={"from": "ELMoForManyLangs", "options": config},
    )


def token_table(cnn: CharacterCnnConfig) -> list[Weight]:
    """The tensors of `token_embedder.pkl` and ours.

    Theirs is one matrix for both parts of a highway layer, and its gate says how much
    of the input stays.
    """
    filters = cnn.filter_count
    table = []

    def add(theirs: str, ours: str, *shape: int) -> None:
        table.append(Weight(theirs, shape, (ours,)))

    if cnn.word_size:
        name = "word_emb_layer.embedding.weight"
        add(name, "words.weight", cnn.words, cnn.word_size)
    if cnn.filters:
        size = cnn.character_size
        name = "char_emb_layer.embedding.weight"
        add(name, "characters.weight", cnn.characters, size)
        for index, (width, number) in enumerate(cnn.filters):
            name = f"convolutions.{index}"
            add(f"{name}.weight", f"{name}.weight", number, size, width)
            add(f"{name}.bias", f"{name}.bias", number)
        for index in range(cnn.highways):
            theirs = f"highways._layers.{index}"
            gates = (f"highways.{index}.transform", f"highways.{index}.carry")
            for part, shape in (
                ("weight", (2 * filters, filters)),
                ("bias", (2 * filters,)),
            ):
                ours = tuple(f"{gate}.{part}" for gate in gates)
                table.append(Weight(f"{theirs}.{part}", shape, ours, _read_highway))
    projection = cnn.projection_size
    features = filters + cnn.word_size
    add("projection.weight", "projection.weight", projection, features)
    add("projection.bias", "projection.bias", projection)
    return table


def encoder_table(lstm: LstmSizes) -> list[Weight]:
    """The tensors of `encoder.pkl` and ours, whose gates are in the same order."""
    cell = lstm.cell_size
    projection = lstm.projection_size
    tensors = {
        "input_linearity.weight": ("input_weight", (4 * cell, projection)),
        "state_linearity.weight": ("hidden_weight", (4 * cell, projection)),
        "state_linearity.bias": ("bias", (4 * cell,)),
        "state_projection.weight": ("projection_weight", (projection, cell)),
    }
    table = []
    for direction, index in product(DIRECTIONS, range(lstm.layers)):
        for theirs, (ours, shape) in tensors.items():
            name = f"{direction_name(direction)}.layers.{index}.{ours}"
            table.append(Weight(f"{direction}_layer_{index}.{theirs}", shape, (name,)))
    return table


def _read_highway(theirs: Tensor) -> tuple[Tensor, Tensor]:
    transform, stay = theirs.chunk(2)
    # 1 − σ(x) = σ(−x)
    return transform, -stay


def _read_config(folder: Path) -> tuple[str, dict[str, Any]]:
    """The config of the model, and the file that it was read from."""
    if not (folder / "config.json").exists():
        raise InputError(
            f"{folder} has neither a config.json (ELMoForManyLangs) nor options.json "
            "and weights.hdf5"
        )
    training = read_json(folder / "config.json")
    with reading(folder / "config.json"):
        name = PurePath(training["config_path"].replace("\\", "/")).name
    # in training it was in the folder of the package
    for file in (folder / name, folder / "configs" / name):
        if file.is_file() and name != "config.json":
            return str(file), read_json(file)
    if name not in _PUBLISHED:
        raise InputError(
            f"{folder} lacks {name!r}, the config of the model that its config.json "
            "names: copy it there"
        )
    return f"the published config {name}", _PUBLISHED_CONFIG


def _read_lexicon(path: Path) -> dict[str, int]:
    """`char.dic` or `word.dic`: an entry and its id a line."""
    ids = {}
    with reading(path):
        for line in read_lines(path):
            *entry, text = line.strip().split("\t")
            # the ideographic space is white space, and was stripped
            ids[entry[0] if entry else "\u3000"] = int(text)
    return ids


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file that PyTorch has pickled; nothing else is unpickled."""
    require_file(path)
    with reading(path):
        # archives are zip files since PyTorch 1.6
        if zipfile.is_zipfile(path):
            check_archive(path)
        elif _is_tar(path):
            raise ValueError("it is a tar archive")
        tensors = dict(torch.load(path, map_location="cpu", weights_only=True))
        for name, tensor in tensors.items():
            # a damaged shape would reach beyond the memory of the numbers
            is_plain = (
                tensor.layout == torch.strided
                and tensor.device.type == "cpu"
                and not tensor.is_nested
            )
            if not is_plain or tensor.nbytes > tensor.untyped_storage().nbytes():
                raise ValueError(f"{name} is no plain tensor")
        return {name: tensor.detach() for name, tensor in tensors.items()}


def _is_tar(path: Path) -> bool:
    """Whether a file begins as a tar archive, in which PyTorch would read headers of
    any size.
    """
    with open(path, "rb") as file, suppress(tarfile.HeaderError):
        tarfile.TarInfo.frombuf(
            file.read(tarfile.BLOCKSIZE), "utf-8", "surrogateescape"
        )
        return True
    return False
