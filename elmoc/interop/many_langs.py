"""ELMoForManyLangs: the directories of its models, read into a model directory.

A directory holds `config.json` (of the training, which names the config of the model),
`char.dic` and `word.dic` (the lexicons), `token_embedder.pkl` and `encoder.pkl` (the
weights). These are read as tensors only; no other object of a pickle is made. Source:
Che et al. 2018; the package `elmoformanylangs` (MIT licence), release 0.0.4.post2.
"""

import re
import tarfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

import torch
from torch import Tensor

from elmoc.encoders.bidirectional import direction_name
from elmoc.errors import InputError, reading
from elmoc.files.checksums import check_archive
from elmoc.files.compression import require_file
from elmoc.files.records import read_json
from elmoc.files.text import read_lines
from elmoc.interop.original_elmo import imported_model, lstm_sizes
from elmoc.model_directory import ModelDirectory
from elmoc.settings import convert
from elmoc.weights import check_finite, contiguous
from elmoc.word_vectors.character_cnn import (
    CHARACTERS,
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
# Our names for theirs; convolutions and the projection have the same.
_EMBEDDINGS = {
    "word_emb_layer.embedding.weight": "words.weight",
    "char_emb_layer.embedding.weight": "characters.weight",
}
# Our names of the lexicons, theirs, and the table that has a row for each entry.
_LEXICONS = (
    (CHARACTERS, "char", "characters.weight"),
    (WORDS, "word", "words.weight"),
)
_HIGHWAY = re.compile(r"highways\._layers\.(\d+)\.(weight|bias)")
_LSTM_PARTS = {
    "input_linearity.weight": "input_weight",
    "state_linearity.weight": "hidden_weight",
    "state_linearity.bias": "bias",
    "state_projection.weight": "projection_weight",
}


def read_many_langs(directory: Path | str) -> ModelDirectory:
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
        # A size of 0 says that words are not read in this way.
        needed = [each for each in _LEXICONS if words[f"{each[1]}_dim"]]
    weights = cnn_weights(_read_tensors(folder / "token_embedder.pkl"))
    lexicons = {
        name: _read_lexicon(folder / f"{kind}.dic", len(weights.get(table, ())))
        for name, kind, table in needed
    }
    with reading(where):
        lstm = lstm_sizes(encoder, residual=True, where=where)
        cnn = convert(
            {
                "projection_size": lstm.projection_size,
                "characters": len(weights.get("characters.weight", ())),
                "character_size": words["char_dim"],
                "max_characters_per_token": words["max_characters_per_token"],
                "filters": words["filters"] if words["char_dim"] else (),
                "activation": words.get("activation", "relu"),
                "highways": words.get("n_highway", 0) if words["char_dim"] else 0,
                "projection": True,
                "words": len(weights.get("words.weight", ())),
                "word_size": words["word_dim"],
            },
            CharacterCnnConfig,
            where=where,
        )
    with reading(folder / "token_embedder.pkl"):
        vectors = CharacterCnnVectors(
            CharacterCnnRecord(cnn, "lexicon"),
            contiguous(weights),
            lexicons=lexicons,
            origin=str(folder),
        )
    with reading(folder / "encoder.pkl"):
        weights = lstm_weights(_read_tensors(folder / "encoder.pkl"))
        return imported_model(lstm, weights, vectors, "ELMoForManyLangs", config)


def cnn_weights(theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our tensors from those of `token_embedder.pkl`.

    Theirs is one matrix for both parts of a highway layer, and its gate says how much
    of the input stays.
    """
    ours = {}
    for name, tensor in theirs.items():
        highway = _HIGHWAY.fullmatch(name)
        if highway is None:
            ours[_EMBEDDINGS.get(name, name)] = tensor
        else:
            transform, stay = tensor.chunk(2)
            ours[f"highways.{highway[1]}.transform.{highway[2]}"] = transform
            # 1 − σ(x) = σ(−x)
            ours[f"highways.{highway[1]}.carry.{highway[2]}"] = -stay
    return ours


def lstm_weights(theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our tensors from those of `encoder.pkl`, whose gates are in the same order."""
    ours = {}
    for name, tensor in theirs.items():
        layer, _, part = name.partition(".")
        direction, _, index = layer.partition("_layer_")
        layer = f"{direction_name(direction)}.layers.{index}"
        ours[f"{layer}.{_LSTM_PARTS.get(part, part)}"] = tensor
    return ours


def _read_config(folder: Path) -> tuple[str, dict[str, Any]]:
    """The config of the model, and the file that it was read from."""
    path = folder / "config.json"
    if not path.exists():
        raise InputError(
            f"{folder} has neither a config.json (ELMoForManyLangs) nor options.json "
            "and weights.hdf5"
        )
    with reading(path):
        name = PurePath(read_json(path)["config_path"].replace("\\", "/")).name
    # In training it was in the folder of the package.
    for file in (folder / name, folder / "configs" / name):
        if file.is_file() and file != path:
            return str(file), read_json(file)
    if name not in _PUBLISHED:
        raise InputError(
            f"{folder} lacks {name!r}, the config of the model that its config.json "
            "names: copy it there"
        )
    return f"the published config {name}", _PUBLISHED_CONFIG


def _read_lexicon(path: Path, rows: int) -> dict[str, int]:
    """`char.dic` or `word.dic`: an entry and its id a line.

    Every row of a table has an entry, as the package writes and needs it.

    Args:
        path: the file.
        rows: of its table.

    Raises:
        InputError: a line is damaged, or the lexicon is of another model.
    """
    lexicon: dict[str, int] = {}
    ids = []
    for number, line in enumerate(read_lines(path), 1):
        with reading(f"{path}, line {number}"):
            entry, _, text = line.strip().rpartition("\t")
            ids.append(int(text))
        # The ideographic space is white space, and was stripped.
        lexicon[entry.split("\t")[0] or "\u3000"] = ids[-1]
    if sorted(ids) != list(range(rows)):
        raise InputError(
            f"{path} has {len(ids):,} entries, with ids to {max(ids, default=0):,}, "
            f"but their table in token_embedder.pkl has {rows:,} rows, one for each: "
            "it was cut, or is of another model"
        )
    return lexicon


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file that PyTorch has pickled; nothing else is unpickled."""
    require_file(path)
    with reading(path):
        # Archives are zip files since PyTorch 1.6.
        if zipfile.is_zipfile(path):
            check_archive(path)
        with open(path, "rb") as file, suppress(tarfile.HeaderError):
            # Of a tar archive, PyTorch would read headers of any size.
            tarfile.TarInfo.frombuf(file.read(tarfile.BLOCKSIZE), "utf-8", "replace")
            raise ValueError("it is a tar archive")
        tensors = dict(torch.load(path, map_location="cpu", weights_only=True))
        for name, tensor in tensors.items():
            # A damaged shape would reach beyond the memory of the numbers.
            if (
                tensor.layout != torch.strided
                or tensor.device.type != "cpu"
                or tensor.is_nested
                or tensor.nbytes > tensor.untyped_storage().nbytes()
            ):
                raise ValueError(f"{name} is no plain tensor")
        check_finite(tensors)
        return tensors
