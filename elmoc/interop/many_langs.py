"""ELMoForManyLangs: the directories of its models, read into a model directory.

A directory holds `config.json` (of the training, which names the config of the model), `char.dic` and `word.dic` (the
lexicons), `token_embedder.pkl` and `encoder.pkl` (the weights). These are read as tensors only; no other object of a
pickle is made. Source: Che et al. 2018; the package `elmoformanylangs` (MIT licence), release 0.0.4.post2.
"""

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path, PurePath
from typing import Any, TypeVar

import torch
from torch import Tensor

from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import check_finite, check_weights, direction_name
from elmoc.encoders.lstm import LstmSizes
from elmoc.errors import InputError, reason, shortened
from elmoc.files.checksums import check_archive
from elmoc.files.records import convert, read_json
from elmoc.files.text import read_lines, require_file
from elmoc.interop.imported import ImportedModel, Weight, lstm_sizes, our_tensors
from elmoc.settings import setting
from elmoc.word_vectors.character_cnn import CharacterCnnRecord, StoredCharacterCnn
from elmoc.word_vectors.character_network import CharacterCnnConfig
from elmoc.word_vectors.characters import LEXICON

ADVICE = "get the model again"
_MOST = 2**20
_PUBLISHED = ("cnn_50_100_512_4096_sample.json", "cnn_0_100_512_4096_sample.json")
"""The configs that are in the package, and not in the directories of the published models; both say the same."""
_PUBLISHED_CONFIG = {
    "encoder": {"name": "elmo", "projection_dim": 512, "cell_clip": 3, "proj_clip": 3, "dim": 4096, "n_layers": 2},
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
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """`encoder` of a config."""

    name: str
    dim: int = setting(least=1, most=_MOST)
    n_layers: int = setting(least=1, most=1000)
    projection_dim: int = setting(least=1, most=_MOST)
    cell_clip: float | None = None
    proj_clip: float | None = None


@dataclass(frozen=True, kw_only=True)
class TokenOptions:
    """`token_embedder` of a config: what is read where its name is `cnn`.

    char_dim, word_dim: 0 where words are not read by their characters, or not as wholes.
    """

    char_dim: int = setting(least=0, most=_MOST)
    word_dim: int = setting(least=0, most=_MOST)
    max_characters_per_token: int
    filters: tuple[tuple[int, int], ...] = ()
    activation: str = "relu"
    n_highway: int = 0


def read_many_langs(directory: Path | str) -> ImportedModel:
    """Read a model of ELMoForManyLangs.

    Raises `InputError` for files that are missing or damaged, a config that does not fit the weights, and models whose
    words or sentences are not read by convolutions and LSTMs with projection.
    """
    folder = Path(directory)
    where, config = _read_config(folder)
    encoder = _part(config, "encoder", EncoderOptions, where)
    words = _token_options(config, where)
    if encoder.name.lower() != "elmo":
        raise InputError(
            f"{where}: its encoder is {shortened(encoder.name)!r}, and only that of ELMo (elmo: LSTMs with projection) "
            "can be imported: give another model"
        )
    tokens_file, encoder_file = folder / "token_embedder.pkl", folder / "encoder.pkl"
    lexicons = {
        name: _read_lexicon(folder / f"{name}.dic") if size else None
        for name, size in (("char", words.char_dim), ("word", words.word_dim))
    }
    tensors = _read_tensors(tokens_file)
    tables = {name: tensors.get(f"{name}_emb_layer.embedding.weight") for name in lexicons}
    rows = {name: 0 if table is None or not table.ndim else len(table) for name, table in tables.items()}
    cnn, lstm = _sizes(words, encoder, rows, where)
    stored = StoredCharacterCnn(
        CharacterCnnRecord(cnn, LEXICON),
        _renamed(tokens_file, tensors, token_table(cnn)),
        characters=lexicons["char"],
        words=lexicons["word"],
    )
    weights = _renamed(encoder_file, _read_tensors(encoder_file), encoder_table(lstm))
    return ImportedModel(str(folder), lstm, weights, stored, {"from": "ELMoForManyLangs", "options": config})


def token_table(cnn: CharacterCnnConfig) -> list[Weight]:
    """The tensors of `token_embedder.pkl` and ours.

    Theirs is one matrix for both parts of a highway layer, and its gate says how much of the input stays.
    """
    filters, features = cnn.filter_count, cnn.filter_count + cnn.word_size
    weights = []
    if cnn.word_size:
        weights.append(_same("word_emb_layer.embedding.weight", (cnn.words, cnn.word_size), "words.weight"))
    if cnn.filters:
        shape = (cnn.characters, cnn.character_size)
        weights.append(_same("char_emb_layer.embedding.weight", shape, "characters.weight"))
        for index, (width, number) in enumerate(cnn.filters):
            weights.append(_same(f"convolutions.{index}.weight", (number, cnn.character_size, width)))
            weights.append(_same(f"convolutions.{index}.bias", (number,)))
        for index in range(cnn.highways):
            for part, columns in (("weight", (filters,)), ("bias", ())):
                ours = tuple(f"highways.{index}.{gate}.{part}" for gate in ("transform", "carry"))
                weights.append(Weight(f"highways._layers.{index}.{part}", (2 * filters, *columns), ours, _read_highway))
    weights.append(_same("projection.weight", (cnn.projection_size, features)))
    weights.append(_same("projection.bias", (cnn.projection_size,)))
    return weights


def encoder_table(lstm: LstmSizes) -> list[Weight]:
    """The tensors of `encoder.pkl` and ours, whose gates are in the same order."""
    cell, projection = lstm.cell_size, lstm.projection_size
    shapes = {
        "input_linearity.weight": ("input_weight", (4 * cell, projection)),
        "state_linearity.weight": ("hidden_weight", (4 * cell, projection)),
        "state_linearity.bias": ("bias", (4 * cell,)),
        "state_projection.weight": ("projection_weight", (projection, cell)),
    }
    return [
        _same(f"{direction}_layer_{index}.{theirs}", shape, f"{direction_name(direction)}.layers.{index}.{ours}")
        for direction in DIRECTIONS
        for index in range(lstm.layers)
        for theirs, (ours, shape) in shapes.items()
    ]


def _same(theirs: str, shape: tuple[int, ...], ours: str | None = None) -> Weight:
    return Weight(theirs, shape, (ours or theirs,), lambda tensor: (tensor,))


def _read_highway(theirs: Tensor) -> tuple[Tensor, Tensor]:
    transform, stay = theirs.chunk(2)
    return transform, -stay  # 1 − σ(x) = σ(−x)


def _read_config(folder: Path) -> tuple[str, dict[str, Any]]:
    """The config of the model, and the file that it was read from."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a directory: give that of an ELMoForManyLangs model, or options.json and weights.hdf5"
        )
    if not (folder / "config.json").exists():
        raise InputError(
            f"{folder} has neither config.json, as an ELMoForManyLangs model has, nor one options.json and one "
            "weights.hdf5, as original ELMo has: give the directory, or the two files, of one model"
        )
    training = read_json(folder / "config.json", advice=ADVICE)
    path = training.get("config_path") if isinstance(training, dict) else None
    if not isinstance(path, str):
        raise InputError(f"{folder / 'config.json'} has no config_path, as an ELMoForManyLangs model has: {ADVICE}")
    name = PurePath(path.replace("\\", "/")).name
    for inner in ("", "configs"):  # nothing outside the directory is read, wherever it was in training
        if name and "\0" not in name and (file := folder / inner / name).is_file() and name != "config.json":
            config = read_json(file, advice=ADVICE)
            if not isinstance(config, dict):
                raise InputError(f"{file} is no config of an ELMoForManyLangs model: {ADVICE}")
            return str(file), config
    if name not in _PUBLISHED:
        raise InputError(
            f"{folder} lacks {shortened(name)!r}, the config of the model that its config.json names: copy it there"
        )
    return f"the published config {name}", _PUBLISHED_CONFIG


def _token_options(config: Mapping[str, Any], where: str) -> TokenOptions:
    tokens = config.get("token_embedder")
    name = tokens.get("name") if isinstance(tokens, dict) else None
    if isinstance(name, str) and name.lower() != "cnn":
        raise InputError(
            f"{where}: its token_embedder is {shortened(name)!r}, and only cnn can be imported (vectors of the other "
            "kind depend on the longest word of the batch): give another model"
        )
    return _part(config, "token_embedder", TokenOptions, where)


def _part(config: Mapping[str, Any], section: str, kind: type[T], where: str) -> T:
    """A section of a config, without the keys that the package does not read when it runs."""
    values = config.get(section)
    if not isinstance(values, dict):
        raise InputError(f"{where} has no {section}, as the config of an ELMoForManyLangs model has: {ADVICE}")
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    known = {name: value for name, value in values.items() if name in names}
    return convert(known, kind, where=where, advice=ADVICE, prefix=f"{section}.")


def _sizes(
    words: TokenOptions, encoder: EncoderOptions, rows: Mapping[str, int], where: str
) -> tuple[CharacterCnnConfig, LstmSizes]:
    """Our sizes; `rows` has those of the tables of characters and words."""
    try:
        return CharacterCnnConfig(
            projection_size=encoder.projection_dim,
            characters=rows["char"],
            character_size=words.char_dim,
            max_characters_per_token=words.max_characters_per_token,
            filters=words.filters if words.char_dim else (),
            activation=words.activation,
            highways=words.n_highway if words.char_dim else 0,
            projection=True,
            words=rows["word"],
            word_size=words.word_dim,
        ), lstm_sizes(
            projection=encoder.projection_dim,
            cell=encoder.dim,
            layers=encoder.n_layers,
            cell_clip=encoder.cell_clip,
            projection_clip=encoder.proj_clip,
            residual=True,
        )
    except InputError as error:
        raise InputError(f"{where} cannot be used: {error}: {ADVICE}") from None


def _read_lexicon(path: Path) -> dict[str, int]:
    """`char.dic` or `word.dic`: an entry and its id a line; one of white space only stands for U+3000."""
    ids = {}
    for number, line in enumerate(read_lines(path), 1):
        *entry, text = line.strip().split("\t")
        if len(entry) > 1 or not (text.isascii() and text.isdigit() and len(text) < 12):
            raise InputError(f"{path}, line {number}: an entry, a tab and its id are expected: {ADVICE}")
        ids[entry[0] if entry else "\u3000"] = int(text)
    return ids


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file that PyTorch has pickled, without unpickling anything else."""
    require_file(path)
    try:
        if zipfile.is_zipfile(path):  # as it is since PyTorch 1.6
            check_archive(path)
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # what a damaged archive or pickle may raise is not documented
        if isinstance(error, OSError) and error.filename:
            raise
        raise InputError(
            f"{path} is damaged, or holds more than tensors ({reason(str(error).split('. ')[0])}): {ADVICE}"
        ) from None
    if not isinstance(tensors, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) and tensor.layout == torch.strided
        for name, tensor in tensors.items()
    ):
        raise InputError(f"{path} holds something else than tensors and their names: {ADVICE}")
    return dict(tensors)


def _renamed(path: Path, tensors: Mapping[str, Tensor], table: list[Weight]) -> dict[str, Tensor]:
    """Our tensors from those of a file, which has to have all of the table, and no others."""
    try:
        check_weights(tensors, {weight.theirs: torch.empty(weight.shape, device="meta") for weight in table})
        check_finite(tensors)
    except InputError as error:
        raise InputError(f"{path} does not fit the config ({error}): {ADVICE}") from None
    return our_tensors(table, lambda weight: tensors[weight.theirs])
