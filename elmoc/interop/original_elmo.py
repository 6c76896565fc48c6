"""Original ELMo: the options and weights of bilm-tf and AllenNLP, read into a model directory and written from one.

`original_weights` has every tensor of a `weights.hdf5` beside ours; import and export both go by it.
Source: Peters et al. 2018; bilm-tf (`bilm/model.py`, `bilm/training.py`), AllenNLP (`allennlp/modules/elmo.py`).
"""

import io
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor

from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import check_finite, direction_name
from elmoc.encoders.lstm import LstmSizes
from elmoc.errors import InputError, shortened
from elmoc.files.hdf5 import CheckedFile
from elmoc.files.locks import locked
from elmoc.files.records import convert, json_bytes, read_json
from elmoc.files.text import require_file
from elmoc.files.writing import atomic_path, refuse_existing, require_space
from elmoc.interop.imported import ImportedModel, Weight, lstm_sizes, our_tensors
from elmoc.interop.original_weights import weight_table
from elmoc.model_directory import ModelDirectory, read_model_directory
from elmoc.settings import setting
from elmoc.word_vectors.character_cnn import CharacterCnnRecord, StoredCharacterCnn
from elmoc.word_vectors.character_network import CharacterCnnConfig
from elmoc.word_vectors.characters import UTF8, Utf8Spelling

ADVICE = "get both files of the model again"
_MOST = 2**20


@dataclass(frozen=True, kw_only=True)
class EmbeddingOptions:
    """`char_cnn.embedding`: the width of a character."""

    dim: int = setting(least=1, most=_MOST)


@dataclass(frozen=True, kw_only=True)
class CharCnnOptions:
    """`char_cnn`, with the names of `options.json`.

    n_characters: 262 where id 0 is counted, which pads sentences and has no row in the weights, else 261.
    """

    activation: str
    embedding: EmbeddingOptions
    filters: tuple[tuple[int, int], ...]
    max_characters_per_token: int
    n_characters: int = 262
    n_highway: int | None = None

    def __post_init__(self) -> None:
        if self.n_characters not in (Utf8Spelling.SIZE, Utf8Spelling.SIZE + 1):
            raise InputError(f"n_characters must be 261 or 262 (bytes and marks), not {self.n_characters}")


@dataclass(frozen=True, kw_only=True)
class LstmOptions:
    """`lstm`, with the names of `options.json`."""

    dim: int = setting(least=1, most=_MOST)
    n_layers: int = setting(least=1, most=1000)
    projection_dim: int = setting(least=1, most=_MOST)
    cell_clip: float | None = None
    proj_clip: float | None = None
    use_skip_connections: bool = False


def read_original_elmo(options: Path | str, weights: Path | str) -> ImportedModel:
    """Read a model of bilm-tf or AllenNLP.

    Raises `InputError` for files that are missing, damaged or foreign, options that do not fit each other or the
    weights, and tensors that are missing, unknown, of another shape, or have numbers that are not finite.
    """
    if h5py.is_hdf5(options):
        raise InputError(f"{options} is HDF5, and not JSON: give the options first, and the weights after them")
    content = read_json(options, advice=ADVICE)
    with CheckedFile(weights, advice=ADVICE) as file:
        with file.damage("cannot be read"):
            projection = "CNN_proj" in file
        cnn, lstm = _sizes(content, str(options), projection=projection)
        table = weight_table(cnn, lstm)
        _check_names(file, [weight.theirs for weight in table])
        ours = our_tensors(table, partial(_read_tensor, file))
    encoder = {name: tensor for name, tensor in ours.items() if name.startswith(_OF_DIRECTIONS)}
    kept = {name: encoder.pop(name) for name in list(encoder) if name.endswith(".forget_bias")}
    cnn_weights = {name: tensor for name, tensor in ours.items() if not name.startswith(_OF_DIRECTIONS)}
    stored = StoredCharacterCnn(CharacterCnnRecord(cnn, UTF8), cnn_weights, kept=kept)
    return ImportedModel(str(weights), lstm, encoder, stored, {"from": "bilm-tf or AllenNLP", "options": content})


def find_original_elmo(directory: Path | str) -> tuple[Path, Path] | None:
    """The options and weights of the model in a directory, by the ends of their names; None where there is not one."""
    options, weights = (list(Path(directory).glob(f"*{name}")) for name in ("options.json", "weights.hdf5"))
    return (options[0], weights[0]) if len(options) == len(weights) == 1 else None


_OF_DIRECTIONS = tuple(f"{direction_name(direction)}." for direction in DIRECTIONS)


def _sizes(content: Any, where: str, *, projection: bool) -> tuple[CharacterCnnConfig, LstmSizes]:
    """Our sizes from the content of `options.json`; what stands beside `char_cnn` and `lstm` is about training."""
    if not isinstance(content, dict) or "lstm" not in content:
        raise InputError(f"{where} has no lstm, so it is not the options of an ELMo: {ADVICE}")
    if "char_cnn" not in content:
        raise InputError(
            f"{where} has no char_cnn: only models that read words by their characters can be imported, give such a one"
        )
    theirs = convert(content["char_cnn"], CharCnnOptions, where=where, advice=ADVICE, prefix="char_cnn.")
    lstm = convert(content["lstm"], LstmOptions, where=where, advice=ADVICE, prefix="lstm.")
    try:
        return CharacterCnnConfig(
            projection_size=lstm.projection_dim,
            characters=Utf8Spelling.SIZE,
            character_size=theirs.embedding.dim,
            max_characters_per_token=theirs.max_characters_per_token,
            filters=theirs.filters,
            activation=theirs.activation,
            highways=theirs.n_highway or 0,
            projection=projection,
        ), lstm_sizes(
            projection=lstm.projection_dim,
            cell=lstm.dim,
            layers=lstm.n_layers,
            cell_clip=lstm.cell_clip,
            projection_clip=lstm.proj_clip,
            residual=lstm.use_skip_connections,
        )
    except InputError as error:
        raise InputError(f"{where} cannot be used: {error}: {ADVICE}") from None


def _check_names(file: CheckedFile, expected: list[str]) -> None:
    """Raise an `InputError` unless the file holds the tensors `expected`, and no others."""
    folders: dict[str, set[str]] = {"": set()}
    for name in expected:
        while name:
            folder, _, last = name.rpartition("/")
            folders.setdefault(folder, set()).add(last)
            name = folder
    with file.damage("cannot be read"):
        for folder, names in folders.items():
            group = file.id
            for part in filter(None, folder.split("/")):
                if group.links.get_info(part.encode()).type != h5py.h5l.TYPE_HARD:
                    raise ValueError(f'"{folder}" is a link, which may lead to another file')
                group = h5py.h5g.open(group, part.encode())
            found = {name.decode("utf-8", "replace") for name in group}
            for what, wrong in (("lacks", names - found), ("has unknown", found - names)):
                if wrong:
                    paths = [shortened(f"{folder}/{name}".lstrip("/")) for name in sorted(wrong)]
                    raise InputError(
                        f"{file.path} {what} tensors: {', '.join(paths[:3])}{', …' if len(paths) > 3 else ''}; it does "
                        f"not fit the options: {ADVICE}"
                    )


def _read_tensor(file: CheckedFile, weight: Weight) -> Tensor:
    with file.damage(f"cannot give {weight.theirs}"):
        dataset = file[weight.theirs]
        if dataset.shape != weight.shape or dataset.dtype != np.dtype("<f4"):
            raise InputError(
                f"{file.path}: {weight.theirs} has the shape {list(dataset.shape or ())} and the type {dataset.dtype}, "
                f"where {list(weight.shape)} and float32 are expected; it does not fit the options: {ADVICE}"
            )
        tensor = torch.from_numpy(np.asarray(dataset[()]))
    try:
        check_finite({weight.theirs: tensor})
    except InputError as error:
        raise InputError(f"{file.path}: {error}: {ADVICE}") from None
    return tensor


def export_original_elmo(model_path: Path | str, options: Path | str, weights: Path | str) -> None:
    """Write a model directory as the files of bilm-tf and AllenNLP.

    Raises `InputError` for a model that is none of theirs, and where one of the files exists or both are the same.
    """
    if os.path.realpath(options) == os.path.realpath(weights):
        raise InputError(f"{options} is given for the options and the weights: give a file for each")
    with ExitStack() as stack:
        for path in (options, weights):
            stack.enter_context(locked(path))
        refuse_existing(options)
        model = read_model_directory(model_path)
        stored = _require_original(model, model_path)
        table = weight_table(stored.record.network, model.encoder.config.sizes)  # type: ignore[arg-type]
        ours = {**stored.weights, **stored.kept, **model.encoder.weights()}
        content = _options(stored.record.network, model.encoder.config.sizes)  # type: ignore[arg-type]
        require_space(weights, sum(4 * int(np.prod(weight.shape)) for weight in table))
        _write_weights(Path(weights), {each.theirs: each.write(*map(ours.get, each.ours)) for each in table})
        with atomic_path(options) as partial_path:  # last: where there are options, both files are whole
            partial_path.write_bytes(json_bytes(content))


def _write_weights(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write the tensors; a file that an interrupted export has left is of the same bytes, and any other is refused."""
    content = io.BytesIO()  # HDF5's library does not survive a full disk
    with h5py.File(content, "w") as file:
        for name, tensor in tensors.items():
            file.create_dataset(name, data=tensor.contiguous().numpy(), track_times=False)
    if path.exists():
        require_file(path)
        if path.read_bytes() != content.getbuffer():
            refuse_existing(path)
    with atomic_path(path) as partial_path, open(partial_path, "wb") as written:
        written.write(content.getbuffer())


def _require_original(model: ModelDirectory, path: Path | str) -> StoredCharacterCnn:
    """The character CNN of a model that the original tools could run; an `InputError` for any other."""
    sizes, stored, why = model.encoder.config.sizes, model.read_stored_vectors(), ""
    if not isinstance(stored, StoredCharacterCnn):
        why = f"it reads the word vectors {shortened(model.word_vectors.origin)}, and not those of a character CNN"
    elif stored.record.spelling != UTF8:
        why = "it spells words by a lexicon of characters, and not in bytes"
    elif not isinstance(sizes, LstmSizes):
        why = f"its encoder is {sizes.description}, and not ELMo's LSTM with projection"
    elif sizes.layer_norm:
        why = "it has layer normalisation"
    elif sizes.input_layer != "identity":
        why = "it has a projection between word vectors and encoder"
    elif model.word_vectors.post_processing != "none":
        why = "its word vectors are transformed"
    elif set(model.encoder.directions) != set(DIRECTIONS):
        why = "it has one direction only"
    if why or not isinstance(stored, StoredCharacterCnn):
        raise InputError(
            f"{path} cannot be written as an original ELMo, as {why}: export a model that was imported by "
            "`elmoc import-elmo`, trained on from such a one, or trained as pretrain/configs/elmo.toml says"
        )
    return stored


def _options(cnn: CharacterCnnConfig, lstm: LstmSizes) -> dict[str, Any]:
    """The content of `options.json`."""
    char_cnn = CharCnnOptions(
        activation=cnn.activation,
        embedding=EmbeddingOptions(dim=cnn.character_size),
        filters=cnn.filters,
        max_characters_per_token=cnn.max_characters_per_token,
        n_highway=cnn.highways,
    )
    encoder = LstmOptions(
        dim=lstm.cell_size,
        n_layers=lstm.layers,
        projection_dim=lstm.projection_size,
        cell_clip=lstm.cell_clip or None,
        proj_clip=lstm.projection_clip or None,
        use_skip_connections=lstm.residual,
    )
    return {"char_cnn": asdict(char_cnn), "lstm": asdict(encoder)}
