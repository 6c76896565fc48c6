"""Material: which text and vectors is a model made of, and which settings, text and
vectors does it take over from the model that it goes on from?
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmoc.errors import InputError, say
from elmoc.model_directory import ModelDirectory, read_model_directory
from elmoc.settings import convert
from elmoc.sharing.trainings import corpus_of
from elmoc.text.named_files import split_name
from elmoc.word_vectors.opening import is_random
from pretrain.recipe.options import RecipeOptions

# The kind of text that an adapted model reads beside the new text, and its files.
GENERAL = "general"
GENERAL_TEXT = "general.txt"
GENERAL_HELD_OUT = "general_held_out.txt"
# The kind of new text without a name of its own.
NEW = "new"
# The settings that an adapted model keeps of the training before it.
_KEPT = ("encoder", "output_layer", "train", "optimiser")
# Settings of these sections that belong to one run.
_LEFT_OUT = {"train.epochs", "train.updates", "train.mix_shards", "train.seed"}
# The learning rate is this share of the rate before: output layer and encoder are near
# their end.
_SLOWER = 0.5


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a model is made of.

    texts: files of text; NAME=PATH where the text has kinds.
    held_out: files of text to evaluate on, named in the same way.
    vectors: the word vectors of the inputs.
    target_vectors: the word vectors of the targets.
    targets: how target vectors are post-processed.
    general: the corpus directory of general text that is mixed in, if any.
    settings: of the training, by section, where the options name no config.
    """

    texts: list[str]
    held_out: list[str]
    vectors: str
    target_vectors: str
    targets: str
    general: str | None = None
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)


def material_of_model(
    path: str, texts: list[str], output: Path, options: RecipeOptions
) -> Material:
    """New text, and the word vectors, the general text and the settings of a model.

    Args:
        path: the model or run directory to go on from.
        texts: files of new text.
        output: the run directory to make.
        options: of the recipe.

    Raises:
        InputError: the model cannot be read, was not trained against word vectors, or
            does not say how it was trained.
    """
    model = read_model_directory(path, output_layers=False)
    targets = model.output_layer.target_vectors(path)
    if targets is None:
        raise InputError(
            f"{path} was not trained against word vectors: use `python -m pretrain`"
        )
    new = {split_name(text)[0] or NEW for text in texts}
    if GENERAL in new:
        raise InputError(
            f"{GENERAL}=… is what general text is called here: give your text another "
            "name"
        )
    texts = named(texts, NEW)
    held_out = named(options.held_out, new.pop() if len(new) == 1 else NEW)
    general = general_corpus(model.training, output, options)
    if general is not None:
        texts.append(f"{GENERAL}={output / GENERAL_TEXT}")
        held_out.append(f"{GENERAL}={output / GENERAL_HELD_OUT}")
    source = model.word_vectors
    vectors = source.origin if options.vectors is None else options.vectors
    # The vectors of a packed model stand for those that it was trained against.
    packed = model.training.get("packed", {})
    same = targets.fingerprint in (
        source.fingerprint,
        packed.get("word_vectors_fingerprint"),
    )
    # A shared model has the bare name of a file, which others may have, too.
    has_path = os.path.isabs(targets.origin) and os.path.exists(targets.origin)
    is_here = is_random(targets.origin) or has_path
    if packed and not same and not is_here:
        say(f"its targets, {targets.origin}, are not here: its word vectors take over")
        same = True
    return Material(
        texts=texts,
        held_out=held_out,
        vectors=vectors,
        target_vectors=vectors if same else targets.origin,
        targets=targets.post_processing,
        general=general,
        settings={} if options.config else settings_after(path, model),
    )


def general_corpus(
    training: Mapping[str, Any], output: Path, options: RecipeOptions
) -> str | None:
    """The corpus directory of general text: that of the options, or the one that the
    model was trained on, by its record, where it is there; None without any.
    """
    if options.general is not None:
        return None if options.general == "none" else options.general
    trained_on = str(training.get("corpus"))
    # A shared model has the bare name of its corpus, which others may have, too.
    has_path = os.path.isabs(trained_on) and corpus_of(training) is not None
    # It may be away once its sample is written.
    is_there = has_path or (output / GENERAL_TEXT).exists()
    missing = (
        f"none, since {trained_on} is not here, or another by now (general names one)"
    )
    say(f"general text: {trained_on if is_there else missing}")
    return trained_on if is_there else None


def settings_after(path: str, model: ModelDirectory) -> dict[str, dict[str, Any]]:
    """The settings of going on with a model, by section: those of its training, a lower
    learning rate, and linear ends of the schedule, as suit a short run.
    """
    before = convert(model.training.get("recipe", {}), dict[str, Any], where=path)
    if "schedule.base" not in before:
        raise InputError(f"{path} does not say how it was trained: name a config")
    sections: dict[str, dict[str, Any]] = {section: {} for section in _KEPT}
    for key, value in before.items():
        section, _, name = key.partition(".")
        if section in sections and key not in _LEFT_OUT and value is not None:
            sections[section][name] = value
    sections["train"] |= {
        "directions": list(model.encoder.directions),
        "epochs": 2.0,
        "mix_shards": 20,
        "precision": "auto",
    }
    sections["schedule"] = {
        "base": _SLOWER * convert(before["schedule.base"], float, where=path),
        # What the rate is multiplied by, as before.
        "streams_per_worker": before.get("schedule.streams_per_worker", 128),
        "linear_warmup_updates": 20,
        "linear_cooldown": 0.6,
    }
    return sections


def named(texts: list[str], name: str) -> list[str]:
    """Files as NAME=PATH, with `name` for those that have none."""
    return [text if split_name(text)[0] else f"{name}={text}" for text in texts]
