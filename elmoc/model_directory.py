"""Model directories: what an encoder is on disk, written whole and read with checks.

    config.json           version, encoder, directions, the word vectors by origin and fingerprint, the output layer,
                          checksums
    model.safetensors     encoder weights, and the transform (`recipe.boundary`, `recipe.mean`, `recipe.matrix`)
    heads.safetensors     for going on with training, features never need them: the weights of the output layers, and
                          the transform of their target vectors (`targets.boundary`, `targets.mean`, `targets.matrix`)
    character_cnn.safetensors, subwords.safetensors   the word vectors, where a network makes them that was imported or
                          trained: a character CNN, a lookup of subwords
    README.md             what this model is, in words, its user's own among them

A run directory is accepted wherever a model directory is: its exported `model/` is read.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig, check_finite, check_weights
from elmoc.errors import InputError, reason
from elmoc.files.checksums import FileChecksum
from elmoc.files.records import convert, read_json, read_versioned, write_record
from elmoc.files.text import require_file
from elmoc.files.writing import atomic_directory, require_space
from elmoc.sharing.model_card import model_card
from elmoc.version import VERSION as ELMOC_VERSION
from elmoc.word_vectors.opening import is_stored, open_word_vectors, read_stored, stored_kinds
from elmoc.word_vectors.sources import VectorSource, WordVectors, check_vectors
from elmoc.word_vectors.stored import StoredVectors
from elmoc.word_vectors.transform import TransformKind, VectorTransform

T = TypeVar("T")
FORMAT = "elmoc-model"
VERSION, OLDEST_VERSION = 3, 1
WEIGHTS, HEADS, CARD = "model.safetensors", "heads.safetensors", "README.md"
_OF_TARGETS = "targets."
_ARRAYS = ("boundary", "mean", "matrix")
_MOST_REPLACED = 3
"""How often a model may be replaced while it is read."""
ADVICE = "copy or export the model again"
"""What to do about a model directory that is damaged."""


@dataclass(frozen=True)
class ModelRecord:
    """What `config.json` holds.

    checksums: of the files of tensors by name; none in models from before there were checksums.
    """

    elmoc: str
    encoder: dict[str, Any]
    directions: tuple[str, ...]
    word_vectors: VectorSource
    output_layer: dict[str, Any]
    training: dict[str, Any]
    checksums: dict[str, FileChecksum] = field(default_factory=dict)

    def __post_init__(self) -> None:
        TransformKind.parse(self.word_vectors.post_processing)
        if sorted(self.directions) not in (["forward"], ["backward"], sorted(DIRECTIONS)):
            raise InputError(f"directions must be forward, backward or both, not {list(self.directions)}")


@dataclass(frozen=True)
class OutputLayerRecord:
    """What a model directory keeps of the output layers that an encoder was trained against, without a look into it.

    config: its kind, and what else tells it apart from others.
    weights: those of all directions, by name; None where they were not kept.
    transform: of the target vectors; None where it was not kept (by older versions).
    """

    config: dict[str, Any]
    weights: dict[str, Tensor] | None
    transform: VectorTransform | None = None

    def is_like(self, other: "OutputLayerRecord") -> bool:
        """Whether both are of one kind and for the same targets, wherever the files of these are."""
        mine, theirs = ({**record.config, "origin": None} for record in (self, other))
        return mine == theirs

    def target_vectors(self, where: str) -> VectorSource | None:
        """The vectors that the encoder was trained against; None where `config` names none.

        Raises `InputError` with `where` it is from when what it says cannot be.
        """
        named = {each.name: self.config[each.name] for each in fields(VectorSource) if each.name in self.config}
        return convert(named, VectorSource, where=where, advice=ADVICE) if "fingerprint" in named else None


@dataclass
class ModelDirectory:
    """The whole content of a model directory, on the CPU."""

    encoder: BidirectionalEncoder
    output_layer: OutputLayerRecord
    transform: VectorTransform
    word_vectors: VectorSource
    training: dict[str, Any] = field(default_factory=dict)
    path: Path | None = None
    """Where it was read from."""
    checksums: dict[Path, FileChecksum] = field(default_factory=dict)
    """Those that it was written with, by file; none before there were checksums."""
    stored_vectors: Path | StoredVectors | None = None
    """Its word vectors, where a network makes them that was imported or trained, or the file of them: it goes with the
    model."""

    def read_stored_vectors(self) -> StoredVectors | None:
        """The content of the file; None where there is none."""
        stored = self.stored_vectors
        return read_stored(stored) if isinstance(stored, Path) else stored


def write_model_directory(
    path: Path | str, model: ModelDirectory, *, vectors: Path | None = None, link: bool = False
) -> None:
    """Write a model directory; one that exists already is replaced only by a whole one.

    Its word vectors stay, and so does what is no part of the model: a licence, or the `.git` of a shared one.

    `vectors` is the file of its word vectors, where a copy of that goes with it under the name by which it is found;
    with `link` a hard link, which takes no room, where the file system has them: for a file that is replaced by others,
    but never written into. Raises `InputError` where there is a directory of something else.
    """
    path = Path(os.path.abspath(path)) if Path(path).name in ("", "..") else Path(path)
    if path.is_dir() and any(path.iterdir()) and not all((path / name).exists() for name in ("config.json", WEIGHTS)):
        raise InputError(f"{path} is a directory, but not of a model, and is not replaced by one: choose another path")
    if vectors is not None and not link:
        require_space(path, os.path.getsize(vectors))
    with atomic_directory(path) as folder:
        if model.stored_vectors is None:
            name = model.word_vectors.file_name
            if vectors is not None and link:
                _link(os.path.realpath(vectors), folder / name)
            elif vectors is not None:
                shutil.copyfile(vectors, folder / name)
            elif (path / name).is_file():
                _link(path / name, folder / name)
        for each in _others(path):
            if each.is_dir() and not each.is_symlink():
                shutil.copytree(each, folder / each.name, symlinks=True, copy_function=_link)
            elif not (folder / each.name).exists():
                _link(each, folder / each.name)
        transform = {f"recipe.{name}": torch.from_numpy(array) for name, array in model.transform.arrays.items()}
        save_file(contiguous(model.encoder.weights()) | transform, folder / WEIGHTS)
        if model.output_layer.weights is not None:
            targets = {} if model.output_layer.transform is None else model.output_layer.transform.arrays
            of_targets = {f"{_OF_TARGETS}{name}": torch.from_numpy(array) for name, array in targets.items()}
            save_file(contiguous(model.output_layer.weights) | of_targets, folder / HEADS)
        if model.stored_vectors is not None:
            if isinstance(model.stored_vectors, Path):
                name = model.stored_vectors.name
                shutil.copyfile(model.stored_vectors, folder / name)
            else:
                name = model.stored_vectors.file_name
                model.stored_vectors.write(folder / name)
            model = replace(model, word_vectors=replace(model.word_vectors, origin=name))
        written = sorted(folder.glob("*.safetensors"))
        if card := _users_card(path):
            _link(card, folder / CARD)
        else:
            written.append(folder / CARD)
            kind = str(model.output_layer.config.get("kind", "unknown"))
            text = model_card(model.training, encoder=model.encoder, word_vectors=model.word_vectors, output_layer=kind)
            (folder / CARD).write_text(text, encoding="utf-8", newline="")
        record = ModelRecord(
            elmoc=ELMOC_VERSION,
            encoder=model.encoder.config.to_dict(),
            directions=model.encoder.directions,
            word_vectors=model.word_vectors,
            output_layer=model.output_layer.config,
            training=model.training,
            checksums={file.name: FileChecksum.of(file) for file in written},
        )
        write_record(folder / "config.json", record, format=FORMAT, version=VERSION)


def _others(path: Path) -> list[Path]:
    """What is in a model directory and no part of the model."""
    if not path.is_dir():
        return []
    own = {"config.json", WEIGHTS, HEADS, CARD, *(kind.file_name for kind in stored_kinds())}
    with suppress(InputError):  # one that is damaged does not say what its word vectors are
        own.add(_read_config(path / "config.json").word_vectors.file_name)
    return [each for each in path.iterdir() if each.name not in own]


def _users_card(path: Path) -> Path | None:
    """The card of a model directory, where somebody has changed it since it was written."""
    card = path / CARD
    if not card.is_file():
        return None
    with suppress(InputError, OSError):  # of a damaged record, which does not know
        if _read_config(path / "config.json").checksums.get(CARD) == FileChecksum.of(card):
            return None
    return card


def _link(file: Path | str, link: Path | str) -> None:
    try:
        os.link(file, link, follow_symlinks=False)
    except OSError:  # not every file system has links, nor may every file be linked
        shutil.copy2(file, link, follow_symlinks=False)


def read_while_replaced(path: Path | str, read: Callable[[], T]) -> T:
    """What `read` makes of a model directory or a run directory, of which it may read some files before others.

    Where that fails, and the model has been replaced meanwhile, as a run does with its own, the new one is read.
    """
    for _ in range(_MOST_REPLACED):
        before = _model_state(Path(path))
        try:
            return read()
        except (InputError, OSError):
            if _model_state(Path(path)) == before:
                raise
    return read()


def _model_state(path: Path) -> list[tuple[int, int, int]]:
    """What tells the model of a directory from those before it: the file of its record, and when that was written."""
    found = []
    for name in ("model/config.json", "config.json"):
        with suppress(OSError, ValueError):  # as for a name that cannot be
            status = os.stat(path / name)
            found.append((status.st_dev, status.st_ino, status.st_mtime_ns))
    return found


def read_model_directory(path: Path | str, *, fast: bool = False) -> ModelDirectory:
    """Read a model directory, or the `model/` of a run directory; one that is replaced meanwhile is read again.

    `fast` chooses the fast implementation of its encoder. Raises `InputError` when the directory is missing, truncated,
    of a newer version, damaged in the first or last block of a file, or holds weights that are not finite.
    """
    return read_while_replaced(path, lambda: _read_model(_model_path(Path(path)), fast))


def _read_model(path: Path, fast: bool) -> ModelDirectory:
    record = _read_config(path / "config.json")
    size = record.word_vectors.size
    config = EncoderConfig.from_dict(
        record.encoder, word_vector_size=size, where=str(path / "config.json"), advice=ADVICE
    )
    stored = path / record.word_vectors.file_name
    files = (WEIGHTS, HEADS, stored.name)
    checksums = {path / name: record.checksums[name] for name in files if name in record.checksums}
    tensors = _read_tensors(path / WEIGHTS, checksums)
    with torch.device("meta"):  # without weights of their own, which are slow to draw
        encoder = BidirectionalEncoder(config, directions=record.directions, fast=fast)
        shapes = TransformKind.parse(record.word_vectors.post_processing).shapes(size)
        transform = {name: torch.empty(shape) for name, shape in shapes.items()}
    try:
        check_weights(tensors, encoder.weights() | {f"recipe.{name}": each for name, each in transform.items()})
    except InputError as error:
        raise InputError(f"{path / WEIGHTS} does not fit the sizes in config.json ({error}): {ADVICE}") from None
    arrays = {name: tensors.pop(f"recipe.{name}").numpy() for name in transform}
    encoder.load_weights(tensors, assign=True)
    is_there = is_stored(record.word_vectors.origin) and stored.exists()
    if is_there and stored in checksums:
        checksums[stored].check_ends(stored, advice=ADVICE)
    return ModelDirectory(
        encoder=encoder.eval(),
        output_layer=_output_layer(path / HEADS, record.output_layer, checksums),
        transform=VectorTransform(**arrays),
        word_vectors=record.word_vectors,
        training=record.training,
        path=path,
        checksums=checksums,
        stored_vectors=stored if is_there else None,
    )


def _output_layer(path: Path, config: dict[str, Any], checksums: Mapping[Path, FileChecksum]) -> OutputLayerRecord:
    """What `heads.safetensors` holds, where it was kept, of output layers of this `config`."""
    if not path.exists():
        return OutputLayerRecord(config, None)
    weights = _read_tensors(path, checksums)
    arrays = {name: weights.pop(f"{_OF_TARGETS}{name}") for name in _ARRAYS if f"{_OF_TARGETS}{name}" in weights}
    if not arrays:
        return OutputLayerRecord(config, weights)
    size = arrays["boundary"].shape[-1] if "boundary" in arrays and arrays["boundary"].ndim == 2 else 0
    shapes = {"boundary": (2, size), "mean": (size,), "matrix": (size, size)}
    try:
        check_weights(arrays, {name: torch.empty(shapes[name], device="meta") for name in {"boundary", *arrays}})
    except InputError as error:
        raise InputError(f"{path}: the transform of the targets is damaged ({error}): {ADVICE}") from None
    return OutputLayerRecord(
        config, weights, VectorTransform(**{name: tensor.numpy() for name, tensor in arrays.items()})
    )


def model_files(path: Path, *, with_vectors: bool) -> list[str] | None:
    """The names of all files of a model, which may not be there yet but for its record; None where there is no record.

    Without `with_vectors`, word vectors that may be bundled are left out. Raises `InputError` for a damaged record.
    """
    config = path / "config.json"
    if not config.exists():
        return None
    info = read_json(config, advice=ADVICE)
    if not isinstance(info, dict) or info.get("format") != FORMAT:
        return None
    vectors = _read_config(config).word_vectors
    own = vectors.file_name if with_vectors or is_stored(vectors.origin) else ""
    return [config.name, CARD, WEIGHTS, HEADS, *filter(None, [own])]


def bundled_vectors(path: Path | str) -> Path | None:
    """The file of word vectors in a model directory, or in that of a run directory; None where there is none.

    Raises `InputError` where there is no model, or its record is damaged.
    """
    path = _model_path(Path(path))
    file = path / _read_config(path / "config.json").word_vectors.file_name
    return file if file.is_file() else None


def open_model_vectors(model: ModelDirectory, override: str | None) -> WordVectors:
    """Open the word vectors that a model reads: `override`, else bundled in its directory, else where they were."""
    source = model.word_vectors
    bundled = None if model.path is None else model.path / source.file_name
    if override is not None:
        origin = override
    elif bundled is not None and bundled.exists():
        origin = str(bundled)
    else:
        origin = source.origin
        if not origin.startswith("random:") and not Path(origin).exists():
            raise InputError(
                f"the word vectors {origin}, which {model.path or 'this model'} reads, are not there: say where they "
                "are now with --vectors (ElmoC.from_pretrained(..., vectors=...))"
            )
    try:
        vectors = open_word_vectors(origin)
        check_vectors(vectors, source)
    except InputError as error:
        if override is not None or model.path is None:
            raise
        raise InputError(f"the word vectors of {model.path} cannot be used: {error}") from None
    return vectors


def _read_config(path: Path) -> ModelRecord:
    info = read_versioned(path, format=FORMAT, version=VERSION, oldest=OLDEST_VERSION, advice=ADVICE)
    del info["format"]
    if info.pop("version") == 1 and "targets" in info:  # its output layers were all continuous
        targets = convert(info.pop("targets"), VectorSource, where=str(path), advice=ADVICE, prefix="targets.")
        info["output_layer"] = {"kind": "continuous", **asdict(targets)}
    return convert(info, ModelRecord, where=str(path), advice=ADVICE)


def _model_path(path: Path) -> Path:
    """The model directory that `path` is, or that it has as a run directory; an `InputError` when there is none."""
    if (path / "model" / "config.json").exists():
        return path / "model"
    if (path / "checkpoints").is_dir():
        raise InputError(f"{path} is a run directory without a model yet: go on with the run by --resume")
    if not (path / "config.json").exists():
        raise InputError(
            f"{path} is not a model directory (no config.json), nor a run directory with a model: train one with "
            "`python -m pretrain`"
        )
    return path


def contiguous(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a state dict as safetensors takes them."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}


def _read_tensors(path: Path, checksums: Mapping[Path, FileChecksum]) -> dict[str, Tensor]:
    require_file(path)
    if path in checksums:
        checksums[path].check_ends(path, advice=ADVICE)
    try:
        tensors = load_file(path)
        check_finite(tensors)
    except InputError as error:
        raise InputError(f"{path}: {error}: {ADVICE}") from None
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is truncated or damaged ({reason(error)}): {ADVICE}") from None
    return tensors
