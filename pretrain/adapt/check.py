"""Check of a run before its text is read: whether an adaptation's settings are such that a model can go on by them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from elmoc.devices import checked_device
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.errors import InputError
from elmoc.files.records import write_toml
from elmoc.model_directory import ModelDirectory
from pretrain.config import RunConfig, load_config
from pretrain.init_from import require_same_encoder


def check_run(
    settings: Mapping[str, Mapping[str, Any]], sets: Sequence[str], *, model: ModelDirectory, path: Path
) -> RunConfig:
    """The config of these `settings` with `--set` over them; an `InputError` where it cannot train the model at `path`.

    What depends on the text, as whether it is enough for so many streams, is for the run to say.
    """
    config = resolved(settings, sets, name=f"the settings of {path}")
    alone = resolved(settings, (), name=f"the settings of {path}")
    for name in ("corpus", "input_vectors", "target_vectors"):
        if getattr(config.data, name) != getattr(alone.data, name):
            raise InputError(
                f"--set data.{name}: the corpus and its tables `input` and `target` are made here: leave it out, or go "
                "on by hand (docs/going_on.md)"
            )
    with torch.device("meta"):  # without weights
        sizes = EncoderConfig(config.encoder, model.word_vectors.size)
        encoder = BidirectionalEncoder(sizes, directions=config.train.directions)
    require_same_encoder(str(path), encoder, model)
    if config.train.device != "auto":
        try:
            checked_device(config.train.device)
        except InputError as error:
            raise InputError(f"train.device: {error}") from None
    return config


def resolved(settings: Mapping[str, Mapping[str, Any]], sets: Sequence[str], *, name: str) -> RunConfig:
    """The config of settings with `--set` over them; `name` is what an `InputError` calls the settings."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "adapt.toml"
        write_toml(file, settings)
        try:
            return load_config(file, sets, quiet=True)
        except InputError as error:
            raise InputError(str(error).replace(str(file), name)) from None
