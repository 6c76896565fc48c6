"""Adapting: what does a recipe take from the model that it goes on from?"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmoc.errors import InputError, say
from elmoc.files.writing import atomic_path
from elmoc.model_directory import read_model_directory
from elmoc.settings import convert
from elmoc.text.named_files import split_name
from pretrain.config import toml_value
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
_OF_A_RUN = {f"train.{name}" for name in ("epochs", "updates", "mix_shards", "seed")}
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
    """

    texts: list[str]
    held_out: list[str]
    vectors: str
    target_vectors: str
    targets: str
    general: str | None = None


class Parent:
    """A model that a recipe goes on from.

    source_weights: how many times an epoch of its training read each source, where that
        was set.

    Args:
        name: its model or run directory, as the user gives it.

    Raises:
        InputError: it cannot be read, or was not trained against word vectors.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._model = read_model_directory(name)
        targets = self._model.output_layer.target_vectors(name)
        if targets is None:
            raise InputError(
                f"{name} was not trained against word vectors: use `python -m pretrain`"
            )
        self._targets = targets
        # Directions that were trained apart and joined have a record each.
        training: Mapping[str, Any] = self._model.training
        while isinstance(half := training.get("forward"), Mapping):
            training = half
        self._corpus = str(training.get("corpus"))
        recipe = training.get("recipe", {})
        self._settings = convert(recipe, dict[str, Any], where=name)
        weights = self._settings.get("data.sources", {})
        self.source_weights = convert(weights, dict[str, float], where=name)

    def material(
        self, texts: list[str], output: Path, options: RecipeOptions
    ) -> Material:
        """New text, and the word vectors and general text of the model."""
        new = {split_name(text)[0] or NEW for text in texts}
        if GENERAL in new:
            raise InputError(
                f"{GENERAL}=… is what general text is called here: give your text "
                "another name"
            )
        texts = _named(texts, NEW)
        held_out = _named(options.held_out, new.pop() if len(new) == 1 else NEW)
        general = self._general(output, options)
        if general is not None:
            texts.append(f"{GENERAL}={output / GENERAL_TEXT}")
            held_out.append(f"{GENERAL}={output / GENERAL_HELD_OUT}")
        source = self._model.word_vectors
        vectors = options.vectors
        if vectors is None:
            assert self._model.path is not None
            bundled = self._model.path / source.file_name
            vectors = str(bundled) if bundled.exists() else source.origin
        # The vectors of a packed model stand for those that it was trained against.
        packed = self._model.training.get("packed", {})
        own = (source.fingerprint, packed.get("word_vectors_fingerprint"))
        same = self._targets.fingerprint in own
        return Material(
            texts=texts,
            held_out=held_out,
            vectors=vectors,
            target_vectors=vectors if same else self._targets.origin,
            targets=self._targets.post_processing,
            general=general,
        )

    def _general(self, output: Path, options: RecipeOptions) -> str | None:
        if options.general is not None:
            return None if options.general == "none" else options.general
        # The corpus may be away once its sample is written.
        there = Path(self._corpus, "corpus.json").exists()
        if there or (output / GENERAL_TEXT).exists():
            say(f"general text: {self._corpus}")
            return self._corpus
        say(
            f"general text: none, since {self._corpus} is not here "
            "(give --general CORPUS)"
        )
        return None

    def require_settings(self) -> None:
        """Raise an `InputError` where it does not say how it was trained."""
        if "schedule.base" not in self._settings:
            raise InputError(
                f"{self.name} does not say how it was trained: give --config"
            )

    def write_settings(self, path: Path) -> None:
        """Write the config of going on with the model: the settings of its training, a
        lower learning rate, and linear ends of the schedule, as suit a short run.
        """
        sections: dict[str, dict[str, Any]] = {section: {} for section in _KEPT}
        for key, value in self._settings.items():
            section, _, name = key.partition(".")
            if section in sections and key not in _OF_A_RUN and value is not None:
                sections[section][name] = value
        sections["train"] |= {
            "directions": list(self._model.encoder.directions),
            "epochs": 2.0,
            "mix_shards": 20,
            "precision": "auto",
        }
        rate = convert(self._settings["schedule.base"], float, where=self.name)
        sections["schedule"] = {
            "base": _SLOWER * rate,
            "linear_warmup_updates": 20,
            "linear_cooldown": 0.6,
        }
        lines = []
        for section, values in sections.items():
            lines.append(f"[{section}]")
            lines += [f"{name} = {toml_value(each)}" for name, each in values.items()]
            lines.append("")
        with atomic_path(path) as partial:
            partial.write_text("\n".join(lines), encoding="utf-8")


def _named(texts: list[str], name: str) -> list[str]:
    """Files as NAME=PATH, with `name` for those that have none."""
    return [text if split_name(text)[0] else f"{name}={text}" for text in texts]
