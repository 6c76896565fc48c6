"""Model directories: what an encoder is on disk, written whole and read with checks.

    config.json           version, encoder, directions, the word vectors by origin and
                          fingerprint, the output layer, checksums
    model.safetensors     encoder weights, and the transform (`recipe.boundary`,
                          `recipe.mean`, `recipe.matrix`); of a packed model, matrices
                          are float16, or int8 with a float32 scale a row (`NAME.scale`)
    heads.safetensors     for going on with training, features never need them: the
                          weights of the output layers, and the transform of their
                          target vectors (`targets.boundary`, `targets.mean`,
                          `targets.matrix`)
    character_cnn.safetensors, subwords.safetensors, lexicon.safetensors,
    compact.safetensors   the word vectors, where
                          they go with the model: a character CNN, a lookup of subwords
                              or of words, coded rows
    README.md             what this model is, in words, its user's own among them

A run directory is accepted wherever a model directory is: its exported `model/` is
    read.
"""

import os
import shutil
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.errors import InputError, reading
from elmoc.files.checksums import FileChecksum
from elmoc.files.records import read_record, write_record
from elmoc.files.writing import atomic_directory
from elmoc.settings import convert
from elmoc.sharing.model_card import model_card
from elmoc.version import VERSION as ELMOC_VERSION
from elmoc.weights import (
    check_weights,
    contiguous,
    packed_weights,
    read_tensors,
    unpacked_weights,
)
from elmoc.word_vectors.opening import (
    is_stored,
    open_word_vectors,
    read_stored,
    stored_kinds,
)
from elmoc.word_vectors.sources import (
    TRANSFORMS,
    VectorSource,
    WordVectors,
    check_vectors,
)
from elmoc.word_vectors.stored import StoredVectors
from elmoc.word_vectors.transform import VectorTransform

FORMAT = "elmoc-model"
VERSION = 3
WEIGHTS = "model.safetensors"
HEADS = "heads.safetensors"
CARD = "README.md"
_OF_TARGETS = "targets."
# Bytes of the largest file that is checked whole when it is opened: up to 0.3 s of a
# busy core. A model of the paper's size has weights of 372 MB; of a larger file, such
# as a fastText model, only the ends are checked.
_CHECKED_WHOLE = 1 << 29


@dataclass(frozen=True)
class ModelRecord:
    """What `config.json` holds.

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
    """What a model directory keeps of the output layers that an encoder was trained
    against.

    config: its kind, and what else tells it apart from others.
    weights: of all directions, by name; None where they were not kept.
    transform: of the target vectors; None where there are none.
    """

    config: dict[str, Any]
    weights: dict[str, Tensor] | None
    transform: VectorTransform | None = None

    def is_like(self, other: "OutputLayerRecord") -> bool:
        """Whether both are of one kind and for the same targets, wherever the files of
        these are.
        """
        mine, theirs = ({**record.config, "origin": None} for record in (self, other))
        return mine == theirs

    def target_vectors(self, where: str) -> VectorSource | None:
        """The vectors that the encoder was trained against; None where `config` names
        none. Errors name `where`.
        """
        named = {
            each.name: self.config[each.name]
            for each in fields(VectorSource)
            if each.name in self.config
        }
        return (
            convert(named, VectorSource, where=where)
            if "fingerprint" in named
            else None
        )


@dataclass
class ModelDirectory:
    """The whole content of a model directory, on the CPU.

    path: where it was read from.
    checksums: of its files of tensors, as they were written.
    stored_vectors: its word vectors, or the file of them, where they go with the model.
    weight_type: of the matrices of the encoder in the file, one of `WEIGHT_TYPES`; here
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

    def read_stored_vectors(self) -> StoredVectors | None:
        """The content of the file; None where there is none."""
        stored = self.stored_vectors
        return read_stored(stored) if isinstance(stored, Path) else stored


def write_model_directory(
    path: Path | str, model: ModelDirectory, *, vectors: Path | None = None
) -> None:
    """Write a model directory; one that exists already is replaced only by a whole one.

    What is no part of the model stays: the file of its word vectors, a licence, the
    `.git` of a shared one, and a card that somebody has changed.

    `vectors` is the file of its word vectors, where a copy of that goes with it under
    the name by which it is found. Raises `InputError` where there is a directory of
    something else.
    """
    path = Path(os.path.abspath(path))
    if (
        path.is_dir()
        and any(path.iterdir())
        and not all((path / name).exists() for name in ("config.json", WEIGHTS))
    ):
        raise InputError(
            f"{path} is a directory, but not of a model, and is not replaced: choose another path"
        )
    with atomic_directory(path) as folder:
        if (path / "config.json").exists():
            _keep_others(path, folder)
        bundled = folder / model.word_vectors.file_name
        if vectors is not None and not (bundled.exists() and bundled.samefile(vectors)):
            bundled.unlink(missing_ok=True)
            shutil.copyfile(vectors, bundled)
        if isinstance(model.stored_vectors, Path):
            shutil.copyfile(model.stored_vectors, folder / model.stored_vectors.name)
        elif model.stored_vectors is not None:
            name = model.stored_vectors.file_name
            model.stored_vectors.write(folder / name)
            model = replace(
                model, word_vectors=replace(model.word_vectors, origin=name)
            )
        written = _write_tensors(model, folder)
        if not (folder / CARD).exists():
            kind = str(model.output_layer.config.get("kind", "unknown"))
            card = model_card(
                model.training,
                encoder=model.encoder,
                word_vectors=model.word_vectors,
                output_layer=kind,
            )
            (folder / CARD).write_text(card, encoding="utf-8", newline="")
            written.append(folder / CARD)
        record = ModelRecord(
            elmoc=ELMOC_VERSION,
            encoder=model.encoder.config.to_dict(),
            directions=model.encoder.directions,
            word_vectors=model.word_vectors,
            output_layer=model.output_layer.config,
            training=model.training,
            checksums={file.name: FileChecksum.of(file) for file in sorted(written)},
        )
        write_record(folder / "config.json", record, format=FORMAT, version=VERSION)


def _keep_others(path: Path, folder: Path) -> None:
    """Link files of `path` that are no part of the model into `folder`, which takes its
    place.
    """
    replaced = {
        "config.json",
        WEIGHTS,
        HEADS,
        *(kind.file_name for kind in stored_kinds()),
    }
    if (path / CARD).exists() and _read_config(path).checksums.get(
        CARD
    ) == FileChecksum.of(path / CARD):
        replaced.add(CARD)
    for each in path.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.copytree(each, folder / each.name, symlinks=True)
        elif each.name not in replaced:
            try:
                os.link(each, folder / each.name, follow_symlinks=False)
            except OSError:  # not every file system has links
                shutil.copy2(each, folder / each.name, follow_symlinks=False)


def _write_tensors(model: ModelDirectory, folder: Path) -> list[Path]:
    """Write the encoder and the output layers; returns all files of tensors that are
    there now, stored vectors too.
    """
    transform = {
        f"recipe.{name}": torch.from_numpy(array)
        for name, array in model.transform.arrays.items()
    }
    save_file(
        packed_weights(contiguous(model.encoder.weights()), model.weight_type)
        | transform,
        folder / WEIGHTS,
    )
    if model.output_layer.weights is not None:
        targets = (
            {}
            if model.output_layer.transform is None
            else model.output_layer.transform.arrays
        )
        of_targets = {
            f"{_OF_TARGETS}{name}": torch.from_numpy(array)
            for name, array in targets.items()
        }
        save_file(contiguous(model.output_layer.weights) | of_targets, folder / HEADS)
    names = (WEIGHTS, HEADS, *(kind.file_name for kind in stored_kinds()))
    return [folder / name for name in names if (folder / name).exists()]


def read_model_directory(
    path: Path | str, *, fast: bool = False, check_files: bool = True
) -> ModelDirectory:
    """Read a model directory, or the `model/` of a run directory.

    `fast` chooses the fast implementation of its encoder, and `check_files=False`
    compares no checksums. Raises `InputError` when the directory is missing, of another
    version, or damaged (of files above 512 MiB their first and last block count), or
    holds weights that are not finite.
    """
    path = _model_path(Path(path))
    record = _read_config(path)
    size = record.word_vectors.size
    config = EncoderConfig.from_dict(
        record.encoder, word_vector_size=size, where=str(path / "config.json")
    )
    checksums = {
        path / name: checksum
        for name, checksum in record.checksums.items()
        if name != CARD
    }
    for file, checksum in checksums.items():
        if check_files and file.exists():
            check = (
                checksum.check_whole
                if checksum.bytes <= _CHECKED_WHOLE
                else checksum.check_ends
            )
            check(file)
    with reading(path / WEIGHTS):
        tensors, weight_type = unpacked_weights(read_tensors(path / WEIGHTS)[1])
    with torch.device("meta"):  # without weights of their own, which are slow to draw
        encoder = BidirectionalEncoder(config, directions=record.directions, fast=fast)
        arrays_of = {
            "boundary": torch.empty(2, size),
            "mean": torch.empty(size),
            "matrix": torch.empty(size, size),
        }
        transform = dict(
            islice(
                arrays_of.items(),
                1 + TRANSFORMS.index(record.word_vectors.post_processing),
            )
        )
    with reading(path / WEIGHTS):
        check_weights(
            tensors,
            encoder.weights()
            | {f"recipe.{name}": each for name, each in transform.items()},
        )
    arrays = {name: tensors.pop(f"recipe.{name}").numpy() for name in transform}
    encoder.load_weights(tensors, assign=True)
    weights = targets = None
    if (path / HEADS).exists():  # which features never need
        with reading(path / HEADS):
            _, weights = read_tensors(path / HEADS)
            names = [name for name in weights if name.startswith(_OF_TARGETS)]
            arrays_of_targets = {
                name.removeprefix(_OF_TARGETS): weights.pop(name).numpy()
                for name in names
            }
            targets = VectorTransform(**arrays_of_targets) if names else None
    stored = path / record.word_vectors.file_name
    is_there = is_stored(record.word_vectors.origin) and stored.exists()
    return ModelDirectory(
        encoder=encoder.eval(),
        output_layer=OutputLayerRecord(record.output_layer, weights, targets),
        transform=VectorTransform(**arrays),
        word_vectors=record.word_vectors,
        training=record.training,
        path=path,
        checksums=checksums,
        stored_vectors=stored if is_there else None,
        weight_type=weight_type,
    )


def model_files(path: Path, *, with_vectors: bool) -> list[str]:
    """The names of all files of a model, by its record; without `with_vectors`, bundled
    word vectors are left out.
    """
    vectors = _read_config(path).word_vectors
    own = [vectors.file_name] if with_vectors or is_stored(vectors.origin) else []
    return ["config.json", CARD, WEIGHTS, HEADS, *own]


def bundled_vectors(path: Path | str) -> Path | None:
    """The file of word vectors in a model directory, or in a run's; None where there is
    none.
    """
    path = _model_path(Path(path))
    file = path / _read_config(path).word_vectors.file_name
    return file if file.is_file() else None


def open_model_vectors(model: ModelDirectory, override: str | None) -> WordVectors:
    """Open the word vectors that a model reads: `override`, else bundled in its
    directory, else where they were.
    """
    bundled = None if model.path is None else model.path / model.word_vectors.file_name
    origin = override or (
        str(bundled) if bundled and bundled.exists() else model.word_vectors.origin
    )
    try:
        vectors = open_word_vectors(origin)
        check_vectors(vectors, model.word_vectors)
    except (InputError, OSError) as error:
        where = (
            ""
            if override
            else ": say where they are now with --vectors (ElmoC.from_pretrained(..., vectors=...))"
        )
        raise InputError(
            f"the word vectors that {model.path or 'this model'} reads: {error}{where}"
        ) from error
    return vectors


def _read_config(path: Path) -> ModelRecord:
    return read_record(
        path / "config.json", ModelRecord, format=FORMAT, version=VERSION
    )


def _model_path(path: Path) -> Path:
    """The model directory that `path` is, or that it has as a run directory; an
    `InputError` when there is none.
    """
    for folder in (path / "model", path):
        if (folder / "config.json").exists() and not (folder / "checkpoints").is_dir():
            return folder
    raise InputError(
        f"{path} is not a model directory (no config.json), nor a run directory with a model"
    )
