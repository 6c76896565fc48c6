"""Model directories: what an encoder is on disk, written whole and read with checks.

    config.json           version, encoder, directions, the word vectors by origin and fingerprint, the output layer
    model.safetensors     encoder weights, and the transform (`recipe.boundary`, `recipe.mean`, `recipe.matrix`)
    heads.safetensors     the weights of the output layers, for going on with training; features never need them
    README.md             what this model is, in words

A run directory is accepted wherever a model directory is: its exported `model/` is read.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.errors import InputError
from elmoc.files.records import read_versioned, write_json
from elmoc.files.writing import full_disk_is_clear
from elmoc.version import VERSION as ELMOC_VERSION
from elmoc.word_vectors.sources import VectorSource
from elmoc.word_vectors.transform import VectorTransform

FORMAT = "elmoc-model"
VERSION, OLDEST_VERSION = 2, 1


@dataclass(frozen=True)
class OutputLayerRecord:
    """What a model directory keeps of the output layers that an encoder was trained against, without a look into it.

    config: its kind, and what else tells it apart from others.
    weights: those of all directions, by name; None where they were not kept.
    """

    config: dict[str, Any]
    weights: dict[str, Tensor] | None

    def is_like(self, other: "OutputLayerRecord") -> bool:
        """Whether both are of one kind and for the same targets, wherever the files of these are."""
        mine, theirs = ({**record.config, "origin": None} for record in (self, other))
        return mine == theirs


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


def write_model_directory(path: Path | str, model: ModelDirectory) -> None:
    """Write a model directory; one that exists already is replaced only by a whole one."""
    path = Path(path)
    partial, old = (path.with_name(f".{path.name}.{os.getpid()}.{what}") for what in ("partial", "old"))
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        with full_disk_is_clear(path):
            _write_files(partial, model)
        if path.exists():
            os.replace(path, old)
        os.replace(partial, path)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def read_model_directory(path: Path | str, *, fast: bool = False) -> ModelDirectory:
    """Read a model directory, or the `model/` of a run directory.

    `fast` chooses the fast implementation of its encoder. Raises `InputError` when the directory is missing, truncated,
    or of a newer version.
    """
    path = _model_path(Path(path))
    config = read_versioned(
        path / "config.json", format=FORMAT, version=VERSION, oldest=OLDEST_VERSION, advice="export the model again"
    )
    try:
        encoder_config = EncoderConfig.from_dict({**config["encoder"]})
        directions = tuple(config["directions"])
        if not directions or not set(directions) <= set(DIRECTIONS):
            raise InputError(f"unknown directions {list(directions)}")
        word_vectors = VectorSource(**config["word_vectors"])
        if config["version"] == 1:  # whose output layers were all continuous
            config["output_layer"] = {"kind": "continuous", **asdict(VectorSource(**config["targets"]))}
        output_layer = {**config["output_layer"]}
        training = config["training"]
    except InputError as error:
        raise InputError(f"{path / 'config.json'}: {error}") from None
    except (KeyError, TypeError) as error:
        raise InputError(f"{path / 'config.json'} lacks or misspells a setting ({error})") from None
    tensors = _read_tensors(path / "model.safetensors")
    transform = {
        name: tensors.pop(f"recipe.{name}").numpy()
        for name in ("boundary", "mean", "matrix")
        if f"recipe.{name}" in tensors
    }
    if "boundary" not in transform:
        raise InputError(f"{path / 'model.safetensors'} lacks the boundary vectors: export the model again")
    with torch.device("meta"):  # without weights of their own, which are slow to draw
        encoder = BidirectionalEncoder(encoder_config, directions=directions, fast=fast)
    try:
        encoder.load_weights(tensors, assign=True)
    except InputError as error:
        raise InputError(f"{path / 'model.safetensors'} does not fit the sizes in config.json ({error})") from None
    heads = path / "heads.safetensors"
    return ModelDirectory(
        encoder=encoder.eval(),
        output_layer=OutputLayerRecord(output_layer, _read_tensors(heads) if heads.exists() else None),
        transform=VectorTransform(**transform),
        word_vectors=word_vectors,
        training=training,
        path=path,
    )


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


def _write_files(folder: Path, model: ModelDirectory) -> None:
    transform = {
        f"recipe.{name}": torch.from_numpy(array) for name, array in vars(model.transform).items() if array is not None
    }
    save_file(contiguous(model.encoder.weights()) | transform, folder / "model.safetensors")
    if model.output_layer.weights is not None:
        save_file(contiguous(model.output_layer.weights), folder / "heads.safetensors")
    config = {
        "format": FORMAT,
        "version": VERSION,
        "elmoc": ELMOC_VERSION,
        "encoder": model.encoder.config.to_dict(),
        "directions": list(model.encoder.directions),
        "word_vectors": asdict(model.word_vectors),
        "output_layer": model.output_layer.config,
        "training": model.training,
    }
    (folder / "README.md").write_text(_model_card(model), encoding="utf-8")
    write_json(folder / "config.json", config)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: the model directory is not whole") from None
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is truncated or damaged ({error}): copy or export the model again") from None


def _model_card(model: ModelDirectory) -> str:
    encoder, vectors = model.encoder, model.word_vectors
    return f"""# An ELMo-C encoder

{encoder.config.sizes.description}, {" and ".join(encoder.directions)}; layer states are {encoder.width} wide.

It reads the word vectors `{vectors.origin}` (fingerprint {vectors.fingerprint}, post-processing: \
{vectors.post_processing}), which are \
needed to use it; when they have moved, say where with `--vectors`, or put the file into this directory.

    from elmoc import load_model
    model = load_model("THIS DIRECTORY")
    states = model.layer_states([["The", "cat", "sat", "."]])  # a list of [L + 1, n, width] tensors

Training:

    {json.dumps(model.training, ensure_ascii=False)}
"""
