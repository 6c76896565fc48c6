"""Plan of a recipe: its steps, and the files they leave in the run directory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.files.records import toml_value
from elmoc.model_directory import read_model_directory, write_model_directory
from elmoc.text.named_files import split_name
from elmoc.word_vectors.opening import open_word_vectors
from pretrain.config import load_config
from pretrain.data.windows import TextGroups, require_held_out, windows_per_epoch
from pretrain.recipe.steps import Step, corpus_command, seconds_of_training, training_command
from pretrain.run.directory import RunDirectory

_FIXED = ("texts", "held_out", "leave_out", "vectors", "targets")
"""What decides which text and vectors are read; the run itself says which of its settings may not change."""


def require_kinds(texts: Sequence[str], weights: Mapping[str, float]) -> None:
    """Raise an `InputError` for weights of kinds of text (`data.sources`) that are not among `texts`, or all 0."""
    kinds = list(dict.fromkeys(split_name(text)[0] for text in texts))
    if unknown := [name for name in weights if name not in kinds]:
        named = ", ".join(kind for kind in kinds if kind) or "none"
        raise InputError(
            f"data.sources has a weight of {unknown[0]:.50}, which is no kind of the text that is given (its kinds: "
            f"{named}): correct the weight, or name the text as {unknown[0]:.50}=PATH"
        )
    if not any(weights.get(kind, 1.0) for kind in kinds):
        raise InputError("data.sources gives every kind of text the weight 0: give one a weight above 0")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a recipe is given (see the command's help), and its steps; `card` is what the model card says of it."""

    texts: tuple[str, ...]
    held_out: tuple[str, ...]
    leave_out: tuple[str, ...]
    output: Path
    config: str
    max_time: str | None
    vectors: str | None
    targets: str
    bundle: bool
    card: dict[str, str]
    sets: tuple[str, ...]

    @property
    def options(self) -> dict[str, Any]:
        """What stays the same as long as the recipe goes on."""
        return {name: getattr(self, name) for name in _FIXED}

    @property
    def open_options(self) -> tuple[str, ...]:
        """Those of `options` that nothing was made with as yet."""
        return () if self._input_table.exists() else ("vectors",)

    @property
    def corpus(self) -> Path:
        """The corpus directory."""
        return self.output / "corpus"

    @property
    def word_vectors(self) -> str:
        """The word vectors that the encoder reads."""
        return self.vectors or str(self.output / "vectors.bin")

    @property
    def _input_table(self) -> Path:
        return self.corpus / "vectors/input.json"

    @property
    def _target_table(self) -> Path:
        return self.corpus / "vectors/target.json"

    def require_vectors(self) -> None:
        """Raise an `InputError` where vectors are given that cannot be opened, unless both tables of them are made."""
        if self.vectors is not None and not self._target_table.exists():
            open_word_vectors(self.vectors, only=[])

    def steps(self) -> list[Step]:
        """The steps in their order."""
        corpus = self.corpus
        steps = [
            Step("a corpus of the text", self._build_corpus, corpus / "corpus.json"),
            Step("a look at how much text there is", self._check_corpus),
            Step("fastText vectors of the corpus", self._train_fasttext, Path(self.word_vectors)),
            Step("input vectors of every word type", lambda: self._table("input", "none"), self._input_table),
            Step("target vectors of every word type", lambda: self._table("target", self.targets), self._target_table),
            Step("training", self._train, seconds=seconds_of_training(self.output, self.max_time)),
        ]
        if self.vectors is not None:
            del steps[2]
        if self.bundle:
            steps.append(Step("word vectors for the model directory", self._bundle))
        return steps

    def _build_corpus(self) -> Sequence[object]:
        return corpus_command(self.texts, self.corpus, held_out=self.held_out, leave_out=self.leave_out)

    def _check_corpus(self) -> None:
        """What is too little for the training is said now, and not after the steps before it."""
        config, corpus = load_config(self.config, self._sets, quiet=True), Corpus(self.corpus)
        train = config.train
        require_held_out(corpus, train.window)
        groups = TextGroups(corpus, config.data.sources, mix=train.mix_shards, seed=train.seed)
        windows_per_epoch(groups, streams=train.streams, window=train.window)

    def _train_fasttext(self) -> Sequence[object]:
        return ["data_scripts.train_fasttext", self.corpus, self.word_vectors]

    def _table(self, name: str, processing: str) -> Sequence[object]:
        more = ["--name", name, "--post-process", processing]
        return ["data_scripts.build_vectors", self.corpus, self.word_vectors, *more]

    def _train(self) -> Sequence[object]:
        return training_command(self.config, self.output, self._sets, self.max_time)

    @property
    def _sets(self) -> list[str]:
        """What `--set` gives the training."""
        card = [f"card.{name}={toml_value(text)}" for name, text in self.card.items() if text]
        return [f"data.corpus={self.corpus}", *self.sets, *card]

    def _bundle(self) -> None:
        """Write the model directory again with the file of its word vectors, unless it has them."""
        path = RunDirectory(self.output).model
        model = read_model_directory(path)
        origin = Path(model.word_vectors.origin)
        if model.stored_vectors is not None or str(origin).startswith("random:") or (path / origin.name).is_file():
            return
        own = self.vectors is None  # others may be written into by whoever gave them
        write_model_directory(path, model, vectors=Path(self.word_vectors), link=own)
        print(f"{path / origin.name}: the word vectors are in the model directory")
