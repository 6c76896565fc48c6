"""Model directories: what an encoder is on disk, written whole and read with checks.

    config.json           a `ModelRecord`
    model.safetensors     the weights of the encoder, and the transform of the word
                          vectors (`recipe.boundary`, `recipe.mean`, `recipe.matrix`);
                          the matrices of a packed model are float16, or int8 with a
                          float32 scale a row (`NAME.scale`)
    heads.safetensors     the weights of the output layers, and the transform of their
                          target vectors (`targets.…`): training goes on from them,
                          features need neither
    character_cnn.safetensors, subwords.safetensors, lexicon.safetensors,
    compact.safetensors, alone.safetensors, joined.safetensors
                          the word vectors, where they go with the model: a character
                          CNN, a lookup of subwords or of words, coded rows, a network
                          of ALONE, several of them joined
    README.md             the model card

A run directory is accepted wherever a model directory is: its `model/` is read.
"""

import json
import os
import re
import shutil
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.errors import InputError, reading
from elmoc.files.checksums import FileChecksum
from elmoc.files.records import read_record, write_record
from elmoc.files.writing import atomic_directory, remove
from elmoc.settings import convert
from elmoc.sharing.installed import installed_models
from elmoc.sharing.model_card import model_card
from elmoc.version import VERSION as ELMOC_VERSION
from elmoc.weights import (
    check_weights,
    contiguous,
    packed_weights,
    read_tensors,
    taken,
    unpacked_weights,
)
from elmoc.word_vectors.opening import STORED_FILES, open_word_vectors, read_stored
from elmoc.word_vectors.sources import (
    TRANSFORMS,
    VectorSource,
    WordVectors,
    check_vectors,
)
from elmoc.word_vectors.stored import StoredVectors
from elmoc.word_vectors.transform import VectorTransform

FORMAT = "elmoc-model"
VERSION = 4
WEIGHTS = "model.safetensors"
OUTPUT_LAYERS = "heads.safetensors"
CARD = "README.md"
# The prefixes, in the files of weights, of the arrays of a transform: of the word
# vectors that the encoder reads, and of the target vectors.
_TRANSFORM = "recipe."
_TARGETS = "targets."
# What stands before the name in a string of JSON that is an absolute path, or a kind of
# text with one: `KIND=PATH`.
_PATH = re.compile(r'"([^"/=]*=)?/(?:[^"]*/)?(?=[^"])')
# What its user wrote into a record: patterns of words that are kept, and names, may
# look like paths.
_WRITTEN = {"keep", "licence", "name"}
# Bytes of the largest file that is checked whole when it is opened: up to 0.3 s of a
# busy core. A model of the paper's size has weights of 304 MB; of a larger file, such
# as a fastText model, only the ends are checked.
_CHECKED_WHOLE = 1 << 29


@dataclass(frozen=True)
class ModelRecord:
    """The content of `config.json`.

    elmoc: the release that wrote it.
    encoder: see `EncoderConfig.from_dict`.
    directions: their names.
    word_vectors: what the encoder reads.
    output_layer: see `OutputLayerRecord`.
    training: how the model was trained, as its card says; `packed` and `imported` are
        about models that were.
    checksums: of the files of tensors and of the card, by name; a card without one is
        its user's.
    """

    elmoc: str
    encoder: dict[str, Any]
    directions: tuple[str, ...]
    word_vectors: VectorSource
    output_layer: dict[str, Any]
    training: dict[str, Any]
    checksums: dict[str, FileChecksum]


@dataclass(frozen=True)
class OutputLayerRecord:
    """The output layers that an encoder was trained against.

    config: its kind, and what else tells it apart from others.
    weights: of all directions, by name; None where they were not kept, or not read.
    transform: of the target vectors; None where there are none, or it was not read.
    file: what `read` reads.
    checksum: of the file.
    """

    config: dict[str, Any]
    weights: dict[str, Tensor] | None = None
    transform: VectorTransform | None = None
    file: Path | None = None
    checksum: FileChecksum | None = None

    def read(self) -> "OutputLayerRecord":
        """The output layers with their weights, which may take several GB.

        Raises:
            InputError: the file is damaged.
        """
        if self.file is None:
            return self
        _check_file(self.file, self.checksum)
        with reading(self.file):
            _, weights = read_tensors(self.file)
            targets = _take_arrays(weights, _TARGETS)
            transform = VectorTransform(**targets) if targets else None
        return OutputLayerRecord(self.config, weights, transform)

    def is_like(self, other: "OutputLayerRecord") -> bool:
        """Whether both are of one kind and for the same targets, wherever the files of
        the targets are.
        """
        same = {"origin": None, "checksum": None}
        return self.config | same == other.config | same

    def target_vectors(self, where: str) -> VectorSource | None:
        """The vectors that the encoder was trained against; None where `config` names
        none.

        Args:
            where: the file of the record, as errors call it.
        """
        if "fingerprint" not in self.config:
            return None
        own = {
            each.name: self.config[each.name]
            for each in fields(VectorSource)
            if each.name in self.config
        }
        return convert(own, VectorSource, where=where, name="output_layer.{}".format)


@dataclass
class ModelDirectory:
    """The whole content of a model directory, on the CPU.

    transform: of the word vectors.
    word_vectors: what the encoder reads.
    training: see `ModelRecord`.
    path: where it was read from.
    checksums: of its files of tensors, as they were written.
    stored_vectors: its word vectors, or the file of them, where they go with the model.
    weight_type: of the matrices of the encoder in the file, see `packed_weights`; here
        they are float32.
    """

    encoder: BidirectionalEncoder
    output_layer: OutputLayerRecord
    transform: VectorTransform
    word_vectors: VectorSource
    training: dict[str, Any] = field(default_factory=dict)
    path: Path | None = None
    checksums: dict[Path, FileChecksum] = field(default_factory=dict)
    stored_vectors: Path | StoredVectors | None = None
    weight_type: str = "float32"

    def without_paths(self) -> "ModelDirectory":
        """The same with names in the place of absolute paths, as it is shared: where
        files were on this machine is nobody's business, and of no use elsewhere.
        """
        parts = {
            "config": self.output_layer.config,
            "origin": self.word_vectors.origin,
            "training": self.training,
        }
        shared = json.loads(json.dumps(parts), object_hook=_without_paths)
        return replace(
            self,
            output_layer=replace(self.output_layer, config=shared["config"]),
            word_vectors=replace(self.word_vectors, origin=shared["origin"]),
            training=shared["training"],
        )

    @property
    def packed_from(self) -> str | None:
        """The fingerprint of the model that was packed into this one, if any was."""
        with reading(f"the training record of {self.path or 'this model'}"):
            packed = self.training.get("packed")
            return None if packed is None else str(packed["model"])

    def read_stored_vectors(self) -> StoredVectors | None:
        """The word vectors that go with the model; None where there are none."""
        stored = self.stored_vectors
        return read_stored(stored) if isinstance(stored, Path) else stored


def write_model_directory(
    path: Path | str, model: ModelDirectory, *, vectors: Path | None = None
) -> None:
    """Write a model directory; one that exists already is replaced only by a whole one.

    Other files in the directory stay: the file of its word vectors, a licence, the
    `.git` of a shared one, and a card that somebody has changed.

    Args:
        path: the directory.
        model: its content.
        vectors: the file of its word vectors, where a copy goes with the model.

    Raises:
        InputError: the directory exists, and is not of a model.
    """
    path = Path(os.path.abspath(path))
    is_model = (path / "config.json").exists() and (path / WEIGHTS).exists()
    if path.is_dir() and any(path.iterdir()) and not is_model:
        raise InputError(
            f"{path} is a directory, but not of a model, and is not replaced: choose "
            "another path"
        )
    # Its files, besides the record.
    names = [WEIGHTS, OUTPUT_LAYERS, *STORED_FILES]
    with atomic_directory(path) as folder:
        if is_model:
            _keep_others(path, folder, replaced={"config.json", *names})
        source = model.word_vectors
        bundled = folder / source.file_name
        if vectors is not None and not (bundled.exists() and bundled.samefile(vectors)):
            remove(bundled)
            shutil.copyfile(vectors, bundled)
        stored = model.stored_vectors
        if isinstance(stored, Path):
            shutil.copyfile(stored, folder / stored.name)
        elif stored is not None:
            stored.write(folder / stored.file_name)
            source = replace(source, origin=stored.file_name, checksum=None)
        # What is inside is found inside, wherever the directory is moved.
        if (folder / source.file_name).is_file():
            source = replace(source, origin=source.file_name)
            names.append(source.file_name)
        _write_tensors(model, folder)
        if not (folder / CARD).exists():
            card = model_card(
                model.training,
                encoder=model.encoder,
                word_vectors=source,
                output_layer=str(model.output_layer.config.get("kind", "unknown")),
            )
            (folder / CARD).write_text(card, encoding="utf-8", newline="")
            names.append(CARD)
        write_record(
            folder / "config.json",
            ModelRecord(
                elmoc=ELMOC_VERSION,
                encoder=model.encoder.config.to_dict(),
                directions=model.encoder.directions,
                word_vectors=source,
                output_layer=model.output_layer.config,
                training=model.training,
                checksums={
                    name: FileChecksum.of(folder / name)
                    for name in sorted(names)
                    if (folder / name).exists()
                },
            ),
            format=FORMAT,
            version=VERSION,
        )


def _without_paths(record: dict[str, Any]) -> dict[str, Any]:
    """A record with names in the place of absolute paths; those in it are done."""
    shared = json.loads(_PATH.sub(r'"\1', json.dumps(record)))
    return shared | {
        name: value
        for name, value in record.items()
        if name in _WRITTEN or isinstance(value, dict)
    }


def _keep_others(path: Path, folder: Path, *, replaced: set[str]) -> None:
    """Link files of `path` that are no part of the model, and not `replaced`, into
    `folder`, which takes its place.
    """
    written = _read_config(path).checksums.get(CARD)
    # A card that was not changed since is written anew.
    if (path / CARD).exists() and written == FileChecksum.of(path / CARD):
        replaced.add(CARD)
    for each in path.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.copytree(each, folder / each.name, symlinks=True)
        elif each.name not in replaced:
            try:
                os.link(each, folder / each.name, follow_symlinks=False)
            except OSError:
                # Not every file system has links.
                shutil.copy2(each, folder / each.name, follow_symlinks=False)


def _write_tensors(model: ModelDirectory, folder: Path) -> None:
    """Write the encoder and the output layers, each with its transform."""
    tensors = packed_weights(contiguous(model.encoder.weights()), model.weight_type)
    save_file(tensors | _as_tensors(model.transform, _TRANSFORM), folder / WEIGHTS)
    layers = model.output_layer.read()
    if layers.weights is not None:
        tensors = contiguous(layers.weights) | _as_tensors(layers.transform, _TARGETS)
        save_file(tensors, folder / OUTPUT_LAYERS)


def _as_tensors(transform: VectorTransform | None, prefix: str) -> dict[str, Tensor]:
    return {
        prefix + name: torch.from_numpy(array)
        for name, array in (transform.arrays if transform else {}).items()
    }


def _take_arrays(tensors: dict[str, Tensor], prefix: str) -> dict[str, np.ndarray]:
    """The arrays of a transform, taken out of the tensors of a file."""
    return {name: each.numpy() for name, each in taken(tensors, prefix).items()}


def read_model_directory(
    path: Path | str,
    *,
    fast: bool = False,
    check_files: bool = True,
    output_layers: bool = True,
) -> ModelDirectory:
    """Read a model directory, or the `model/` of a run directory.

    Args:
        path: the directory.
        fast: whether the encoder is the fast implementation.
        check_files: whether checksums are compared; of files above 512 MiB the first
            and the last block count.
        output_layers: whether those are read, too; else they are found by
            `OutputLayerRecord.read`.

    Raises:
        InputError: the directory is missing, of another version, or damaged, or holds
            weights that are not finite.
    """
    # Some of it is read later, when the working directory may be another.
    path = Path(os.path.abspath(_model_path(Path(path))))
    record = _read_config(path)
    if len(set(record.directions)) < len(record.directions):
        raise InputError(f"{path / 'config.json'}: a direction is named twice")
    size = record.word_vectors.size
    config = EncoderConfig.from_dict(
        record.encoder, word_vector_size=size, where=str(path / "config.json")
    )
    # The user of a model may change its card.
    checksums = {
        path / name: each for name, each in record.checksums.items() if name != CARD
    }
    for file, checksum in checksums.items():
        if check_files and file.name != OUTPUT_LAYERS and file.exists():
            _check_file(file, checksum)
    # Without weights of their own, which are slow to draw.
    with torch.device("meta"):
        encoder = BidirectionalEncoder(config, directions=record.directions, fast=fast)
    # A transform of each kind has one array more than the kind before it.
    number = 1 + TRANSFORMS.index(record.word_vectors.post_processing)
    shapes = {"boundary": (2, size), "mean": (size,), "matrix": (size, size)}
    expected = {
        _TRANSFORM + name: torch.empty(shape, dtype=torch.float32, device="meta")
        for name, shape in islice(shapes.items(), number)
    }
    with reading(path / WEIGHTS):
        tensors, weight_type = unpacked_weights(read_tensors(path / WEIGHTS)[1])
        check_weights(tensors, encoder.weights() | expected)
        transform = VectorTransform(**_take_arrays(tensors, _TRANSFORM))
    encoder.load_weights(tensors, assign=True)
    file = path / OUTPUT_LAYERS
    layers = OutputLayerRecord(
        record.output_layer,
        file=file if file.exists() else None,
        checksum=checksums.get(file) if check_files else None,
    )
    stored = path / record.word_vectors.file_name
    return ModelDirectory(
        encoder=encoder.eval(),
        output_layer=layers.read() if output_layers else layers,
        transform=transform,
        word_vectors=replace(
            record.word_vectors, origin=_found(record.word_vectors, path)
        ),
        training=record.training,
        path=path,
        checksums=checksums,
        stored_vectors=(
            stored if stored.name in STORED_FILES and stored.exists() else None
        ),
        weight_type=weight_type,
    )


def _check_file(path: Path, checksum: FileChecksum | None) -> None:
    """Compare a file with its checksum, where it has one."""
    if checksum is not None:
        is_small = checksum.bytes <= _CHECKED_WHOLE
        check = checksum.check_whole if is_small else checksum.check_ends
        check(path)


def _found(vectors: VectorSource, model: Path) -> str:
    """Where the file of word vectors is now: in the model directory, beside the model,
    where it was, or beside its run directory; else the recorded origin.
    """
    name = vectors.file_name
    beside = model.resolve().parent
    # Another may stand where it was by now.
    places = [model / name, beside / name, Path(vectors.origin), beside.parent / name]
    return next((str(each) for each in places if os.path.isfile(each)), vectors.origin)


def open_model_vectors(model: ModelDirectory, override: str | None) -> WordVectors:
    """Open the word vectors that a model reads: `override`, else in its directory,
    where they were, or beside it.

    Raises:
        InputError: the vectors are not there, or are others.
    """
    source = model.word_vectors
    try:
        vectors = open_word_vectors(override or source.origin)
        check_vectors(vectors, source)
        return vectors
    except (InputError, OSError) as error:
        raise InputError(
            f"the word vectors that {model.path or 'this model'} reads (fingerprint "
            f"{source.fingerprint}): {error}: say where they are with --vectors "
            "(ElmoC.from_pretrained(..., vectors=...))"
        ) from error


def _read_config(path: Path) -> ModelRecord:
    return read_record(
        path / "config.json", ModelRecord, format=FORMAT, version=VERSION
    )


def _model_path(path: Path) -> Path:
    """The model directory that `path` is, or that it has as a run directory, or that
    is installed by this name.

    Raises:
        InputError: there is none.
    """
    for folder in (path / "model", path):
        if (folder / "config.json").exists() and not (folder / "checkpoints").is_dir():
            return folder
    installed = installed_models()
    if str(path) in installed:
        return installed[str(path)]
    raise InputError(
        f"{path} is not a model directory (no config.json), nor a run directory with a "
        "model, nor a name on a hub (OWNER/NAME), nor an installed model (there are: "
        f"{', '.join(installed) or 'none'})"
    )
