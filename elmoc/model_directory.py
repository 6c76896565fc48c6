"""What is a model directory on disk, and how is one written and read?

    config.json           version, encoder sizes, directions, the word vectors (and targets) by origin and fingerprint
    model.safetensors     encoder weights, and the transform (`recipe.boundary`, `recipe.mean`, `recipe.matrix`)
    heads.safetensors     the heads, for going on with training
    README.md             what this model is, for people

A run directory is accepted wherever a model directory is: its exported `model/` is read.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from elmoc.encoders.lstm import DIRECTIONS, BidirectionalEncoder, EncoderConfig
from elmoc.encoders.recurrence import Recurrence, plain
from elmoc.errors import InputError
from elmoc.files import check_version, full_disk_is_clear, read_json, write_json
from elmoc.heads import ContinuousHeads
from elmoc.version import VERSION as ELMOC_VERSION
from elmoc.word_vectors.transform import VectorTransform

FORMAT = "elmoc-model"
VERSION = 1


@dataclass(frozen=True)
class VectorSource:
    """Which word vectors a model reads, or is trained against."""

    origin: str
    fingerprint: str
    size: int
    post_processing: str


@dataclass
class ModelDirectory:
    """The whole content of a model directory, on the CPU."""

    encoder: BidirectionalEncoder
    heads: ContinuousHeads | None
    """None when they were not kept; only going on with training needs them."""
    transform: VectorTransform
    word_vectors: VectorSource
    targets: VectorSource
    training: dict[str, Any] = field(default_factory=dict)
    path: Path | None = None
    """Where it was read from."""


def write_model_directory(path: Path | str, model: ModelDirectory) -> None:
    """Write a model directory; one that exists already is replaced only by a whole one."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        with full_disk_is_clear(path):
            _write_files(partial, model)
        replace_directory(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def read_model_directory(path: Path | str, *, recurrence: Callable[[], Recurrence] = plain) -> ModelDirectory:
    """Read a model directory, or the `model/` of a run directory.

    `recurrence` gives each layer the function that it steps through time with. Raises `InputError` when the directory
    is missing, truncated, or of a newer version.
    """
    path = Path(path)
    if (path / "model" / "config.json").exists():
        path = path / "model"
    elif (path / "checkpoints").is_dir():
        raise InputError(f"{path} is a run directory without a model yet: go on with the run by --resume")
    if not (path / "config.json").exists():
        raise InputError(
            f"{path} is not a model directory (no config.json), nor a run directory with a model: train one with "
            "`python -m pretrain`"
        )
    config = read_json(path / "config.json")
    check_version(path / "config.json", config, FORMAT, VERSION)
    try:
        encoder_config = EncoderConfig.from_dict(config["encoder"])
        directions = tuple(config["directions"])
        if not directions or not set(directions) <= set(DIRECTIONS):
            raise InputError(f"{path / 'config.json'}: unknown directions {list(directions)}")
        word_vectors = VectorSource(**config["word_vectors"])
        targets = VectorSource(**config["targets"])
        training = config["training"]
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
        encoder = BidirectionalEncoder(encoder_config, directions=directions, recurrence=recurrence)
        heads = ContinuousHeads(
            directions=directions, projection_size=encoder_config.projection_size, target_size=targets.size
        )
    _load(encoder, tensors, path / "model.safetensors")
    heads_path = path / "heads.safetensors"
    if has_heads := heads_path.exists():
        _load(heads, _read_tensors(heads_path), heads_path)
    return ModelDirectory(
        encoder=encoder.eval(),
        heads=heads if has_heads else None,
        transform=VectorTransform(**transform),
        word_vectors=word_vectors,
        targets=targets,
        training=training,
        path=path,
    )


def replace_directory(new: Path, path: Path) -> None:
    """Put the finished directory `new` in the place of `path`, which may exist."""
    old = path.with_name(f".{path.name}.{os.getpid()}.old")
    if path.exists():
        os.replace(path, old)
    os.replace(new, path)
    shutil.rmtree(old, ignore_errors=True)


def contiguous(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a state dict as safetensors takes them."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}


def _write_files(folder: Path, model: ModelDirectory) -> None:
    tensors = {"recipe.boundary": torch.from_numpy(model.transform.boundary)}
    if model.transform.mean is not None:
        tensors["recipe.mean"] = torch.from_numpy(model.transform.mean)
    if model.transform.matrix is not None:
        tensors["recipe.matrix"] = torch.from_numpy(model.transform.matrix)
    save_file(contiguous(model.encoder.state_dict()) | tensors, folder / "model.safetensors")
    if model.heads is not None:
        save_file(contiguous(model.heads.state_dict()), folder / "heads.safetensors")
    config = {
        "format": FORMAT,
        "version": VERSION,
        "elmoc": ELMOC_VERSION,
        "encoder": asdict(model.encoder.config),
        "directions": list(model.encoder.directions),
        "word_vectors": asdict(model.word_vectors),
        "targets": asdict(model.targets),
        "training": model.training,
    }
    (folder / "README.md").write_text(_model_card(config), encoding="utf-8")
    write_json(folder / "config.json", config)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: the model directory is not whole") from None
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is truncated or damaged ({error}): copy or export the model again") from None


def _load(module: torch.nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    try:
        module.load_state_dict(tensors, assign=True)
    except RuntimeError as error:
        problem = " ".join(str(error).split())[:300]
        raise InputError(f"{path} does not fit the sizes in config.json ({problem})") from None


def _model_card(config: dict[str, Any]) -> str:
    sizes = config["encoder"]
    return f"""# An ELMo-C encoder

{sizes["layers"]} LSTM layers of cell size {sizes["cell_size"]} and projection {sizes["projection_size"]}, \
{" and ".join(config["directions"])}; layer states are {len(config["directions"]) * sizes["projection_size"]} wide.

It reads the word vectors `{config["word_vectors"]["origin"]}` (fingerprint \
{config["word_vectors"]["fingerprint"]}, post-processing: {config["word_vectors"]["post_processing"]}), which are \
needed to use it; when they have moved, say where with `--vectors`, or put the file into this directory.

    from elmoc import load_model
    model = load_model("THIS DIRECTORY")
    states = model.layer_states([["The", "cat", "sat", "."]])  # a list of [L + 1, n, width] tensors

Training:

    {json.dumps(config["training"], ensure_ascii=False)}
"""
