"""Plan of an adaptation: its steps, and the files they leave in the run directory."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from elmoc.corpus import MOST_TIMES, Corpus
from elmoc.errors import InputError
from elmoc.files.records import write_toml
from elmoc.model_directory import ModelDirectory
from elmoc.settings import check_settings, setting
from elmoc.sharing.training_record import GENERAL
from elmoc.text.named_files import estimate_tokens, find_named_files, split_name
from elmoc.word_vectors.opening import is_stored, open_word_vectors
from elmoc.word_vectors.sources import VectorSource
from pretrain.adapt.check import check_run
from pretrain.adapt.general import write_sample
from pretrain.adapt.settings import SOURCES, adapted, learning_rate, not_taken_over, recipe_of
from pretrain.recipe.options import key_of
from pretrain.recipe.steps import Step, corpus_command, seconds_of_training, training_command

NEW = "new"
"""The name of the new text's kind, where it is given none; that of general text is `GENERAL`."""
GENERAL_HELD_OUT = "general_held_out.txt"
"""The file of general text that is written last: it says that the sample is whole."""
HELD_OUT_TOKENS = 50_000
"""Of general text, at most."""
TOKENS_AT_LEAST = 2_000
"""Of general text: a corpus is cut into shards."""
_FIXED = ("texts", "held_out", "leave_out", "general", "general_share", "keep_targets")
"""What decides which text is read; the run itself says which of its settings may not change."""


@dataclass(frozen=True, kw_only=True)
class Adaptation:
    """What an adaptation is given (see the command's help), and its steps.

    model, path: the model to go on from, and where it is.
    general: the corpus directory of general text, where there is one.
    general_share: of what training reads, how much is general text.
    keep_targets: whether target vectors are processed with the numbers of the training before, and not fitted anew.
    card: what the model card says of it.

    Raises `InputError` for a number or a setting out of bounds, and a model that cannot go on in this way.
    """

    model: ModelDirectory
    path: Path
    texts: tuple[str, ...]
    held_out: tuple[str, ...]
    leave_out: tuple[str, ...]
    general: str | None
    output: Path
    vectors: str | None
    max_time: str | None
    card: dict[str, str]
    sets: tuple[str, ...]
    keep_targets: bool = False
    epochs: float = setting(2.0, above=0, most=1e6)
    general_share: float = setting(0.3, least=0, most=0.95)
    learning_rate: float | None = None

    def __post_init__(self) -> None:
        check_settings(self, lambda name: f"--{name.replace('_', '-')}")
        if self.learning_rate is not None and not 0 < self.learning_rate <= 1e6:
            raise InputError(f"--learning-rate must be above 0 and at most 1e6, not {self.learning_rate}")
        if GENERAL in [split_name(text)[0] for text in (*self.texts, *self.held_out)]:
            raise InputError(f"{GENERAL}=… is what general text is called here: give your text another name")
        if self.targets is None:
            raise InputError(
                f"{self.path} was not trained against word vectors, as adapting needs it: go on with it by "
                "`python -m pretrain … --init-from`"
            )
        if self.keep_targets and self.model.output_layer.transform is None:
            raise InputError(
                f"{self.path} does not say how its target vectors were processed (models of older versions do not): "
                "leave out --keep-targets"
            )
        known = (self.model.word_vectors.fingerprint, self.targets.fingerprint)
        if self.vectors is not None and self._given_fingerprint not in known:
            raise InputError(
                f"--vectors {self.vectors} are neither those that {self.path} reads nor those that it was trained "
                "against: give one of these, if they have moved"
            )
        if unknown := [name for name in self.given_weights if name not in self.kinds]:
            names = ", ".join(sorted(self.kinds))
            raise InputError(
                f"--set {SOURCES}: no text here is named {unknown[0]:.50} (it has {names}): correct the name"
            )
        if not any(self.given_weights.get(name, 1.0) for name in self.kinds - {GENERAL}):
            raise InputError(f"--set {SOURCES} gives all new text the weight 0: give a kind of it one above 0")

    @property
    def kinds(self) -> set[str]:
        """The kinds of text that training reads."""
        new = {split_name(text)[0] or NEW for text in self.texts}
        return new | {GENERAL} if self.general is not None and self.general_share else new

    @cached_property
    def given_weights(self) -> dict[str, float]:
        """The weights of kinds of text that `--set` gives; `InputError` as `check_run`."""
        settings = self._settings(tokens=1, weights={})  # which follow from the text, as it will be
        return check_run(settings, self.sets, model=self.model, path=self.path).data.sources

    @cached_property
    def _given_fingerprint(self) -> str | None:
        return None if self.vectors is None else open_word_vectors(self.vectors, only=[]).fingerprint

    @cached_property
    def targets(self) -> VectorSource | None:
        """The vectors that the model was trained against, if it was."""
        return self.model.output_layer.target_vectors(str(self.model.path))

    @cached_property
    def recipe(self) -> dict[str, dict[str, Any]]:
        """The settings that the model was trained with."""
        return recipe_of(self.path, self.model)

    @property
    def options(self) -> dict[str, Any]:
        """What stays the same as long as the adaptation goes on."""
        values = {name: getattr(self, name) for name in _FIXED}
        weights = sorted(checksum.whole for checksum in self.model.checksums.values())
        return values | {"path": str(self.path), "weights": weights}

    def warnings(self) -> Iterator[str]:
        """What is worth knowing before the first step."""
        if self.general is None:
            yield "without general text (--general CORPUS) a model may forget what it knew, and nothing shows it"
        differing = not_taken_over(self.model)
        if (weights := differing.pop(SOURCES, None)) is not None and self.general is not None:
            yield (
                f"the directions of {self.path} were trained with different weights of the kinds of text ({weights}): "
                "general text has them in the proportions of its corpus"
            )
        given = set(map(key_of, self.sets))
        if left := [f"{key} ({each})" for key, each in differing.items() if key not in given]:
            yield (
                f"the directions of {self.path} were trained with different settings, so that these are not taken over "
                f"(--set chooses them): {'; '.join(left)}"
            )

    def steps(self) -> list[Step]:
        """The steps in their order."""
        corpus = self.corpus
        steps = [
            Step("a corpus of the text", self._build_corpus, corpus / "corpus.json"),
            Step("input vectors, made as the model's", self._input_table, corpus / "vectors/input.json"),
            Step("target vectors, of the model's kind", self._target_table, corpus / "vectors/target.json"),
            Step("training", self._train, seconds=seconds_of_training(self.output, self.max_time)),
        ]
        if self.general is not None:
            steps.insert(0, Step("a sample of general text", self._write_general, self.output / GENERAL_HELD_OUT))
        return steps

    @property
    def corpus(self) -> Path:
        """The corpus directory of new and general text."""
        return self.output / "corpus"

    def _write_general(self) -> None:
        assert self.general is not None
        corpus = Corpus(self.general)
        if self.general_share:
            files = find_named_files(self.texts)
            new = sum(
                self.given_weights.get(name or NEW, 1.0) * estimate_tokens([file]) for file, name in files.items()
            )
            tokens = max(TOKENS_AT_LEAST, round(self.epochs * self._general_by_new * new))
            self._weight_of_general(min(tokens, corpus.train_tokens), new)  # before anything is made
            written = write_sample(
                corpus, corpus.train, self.output / "general.txt", tokens=tokens, weights=self.recipe["data"]["sources"]
            )
            print(f"{self.output / 'general.txt'}: {written:,} tokens")
        held_out = self.output / GENERAL_HELD_OUT
        print(f"{held_out}: {write_sample(corpus, corpus.held_out, held_out, tokens=HELD_OUT_TOKENS):,} tokens")

    @property
    def _general_by_new(self) -> float:
        return self.general_share / (1 - self.general_share)

    def _weight_of_general(self, general: float, new: float) -> float:
        """How many times an epoch reads so many tokens of general text, so that it has its share beside the new."""
        if GENERAL in self.given_weights:
            return self.given_weights[GENERAL]
        weight = self._general_by_new * new / general
        if weight > MOST_TIMES:
            raise InputError(
                f"--general-share {self.general_share}: {self.general} has so little general text that an epoch "
                f"would read it {weight:,.0f} times, and at most {MOST_TIMES:,} are possible: give a smaller share"
            )
        return weight

    def _build_corpus(self) -> Sequence[object]:
        names = {split_name(text)[0] or NEW for text in self.texts}
        texts, held_out = named(self.texts, NEW), named(self.held_out, names.pop() if len(names) == 1 else NEW)
        if self.general is not None:
            texts += [f"{GENERAL}={self.output / 'general.txt'}"] if self.general_share else []
            held_out += [f"{GENERAL}={self.output / GENERAL_HELD_OUT}"]
        return corpus_command(texts, self.corpus, held_out=held_out, leave_out=self.leave_out)

    def _input_table(self) -> Sequence[object]:
        vectors = self._file_of(self.model.word_vectors)
        return ["data_scripts.build_vectors", self.corpus, vectors, "--name", "input", "--like", self.path]

    def _target_table(self) -> Sequence[object]:
        assert self.targets is not None
        like = ["--like-targets", self.path] if self.keep_targets else ["--post-process", self.targets.post_processing]
        return ["data_scripts.build_vectors", self.corpus, self._file_of(self.targets), "--name", "target", *like]

    def _file_of(self, source: VectorSource) -> str:
        """Where the word vectors are that a source names."""
        inputs, folder = self.model.word_vectors, self.model.path
        if self.vectors is not None and source.fingerprint == self._given_fingerprint:
            return self.vectors
        if source.fingerprint != inputs.fingerprint:
            return source.origin
        assert folder is not None
        name = inputs.file_name
        if is_stored(name) and (folder / name).exists():
            return str(folder)
        return str(folder / name) if (folder / name).exists() else inputs.origin

    def _train(self) -> Sequence[object]:
        config, corpus = self.output / "adapt.toml", Corpus(self.corpus)
        general = sum(shard.tokens for shard in corpus.train if shard.source == GENERAL)
        given = self.given_weights
        new = sum(given.get(shard.source, 1.0) * shard.tokens for shard in corpus.train if shard.source != GENERAL)
        weights = given | ({GENERAL: self._weight_of_general(general, new)} if general else {})
        write_toml(config, self._settings(tokens=round(new + weights.get(GENERAL, 0.0) * general), weights=weights))
        sets = [each for each in self.sets if key_of(each) != SOURCES]
        return training_command(config, self.output, sets, self.max_time, anew=["--init-from", self.path])

    def _settings(self, *, tokens: int, weights: Mapping[str, float]) -> dict[str, dict[str, Any]]:
        """The settings of the run, of which an epoch reads `tokens`, by the weights of kinds of text."""
        settings = adapted(
            self.recipe,
            self.model,
            corpus=self.corpus,
            tokens=tokens,
            weights=dict(weights),
            epochs=self.epochs,
            rate=learning_rate(self.recipe, self.model, given=self.learning_rate),
        )
        return settings | {"card": {name: text for name, text in self.card.items() if text}}


def named(texts: Sequence[str], name: str) -> list[str]:
    """The texts as `NAME=PATH`: those that say no NAME get this one."""
    return [text if split_name(text)[0] else f"{name}={text}" for text in texts]
