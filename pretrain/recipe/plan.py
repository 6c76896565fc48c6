"""Plan of a recipe: which steps lead from text to a model, and with which settings is
it trained?
"""

import argparse
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elmoc.corpus import Corpus
from elmoc.devices import accelerator
from elmoc.errors import InputError
from elmoc.files.compression import open_binary
from elmoc.files.records import read_json, write_json
from elmoc.files.writing import atomic_path
from elmoc.model_directory import read_model_directory
from elmoc.settings import parse_duration
from elmoc.text.documents import estimate_text_bytes
from elmoc.text.named_files import find_named_files, split_name
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.sources import TRANSFORMS
from pretrain import CONFIGS
from pretrain.config import RunConfig, differences, load_config, toml_value
from pretrain.recipe.steps import Step
from pretrain.run.directory import RunDirectory

# small.toml (9.8 million parameters) reads a quarter to a half of the words that
# fast.toml (2.5 million) reads in the same time, and is ahead once it has read some ten
# million: in twenty minutes of one core it read 1.5 million and was behind (reciprocal
# rank .324 and .332); in an hour of two fast cores 30 million, and was ahead (.374 and
# .360, of other text). At its slowest, 1,700 words/s of two cores, ten million words
# take 100 minutes.
SMALL_FROM_WORDS = 10_000_000
SMALL_FROM_SECONDS = 2 * 3600
# The words of text are estimated by the bytes a word takes at its beginning: 5 in
# English, 12 in Russian.
SAMPLE_BYTES = 1_000_000
# An epoch has at least this number of updates: of a small text fewer streams are read
# at once.
UPDATES_AT_LEAST = 40
STREAMS_AT_LEAST = 4
# Held-out tokens of general text, at most, that an adapted model is evaluated on.
GENERAL_HELD_OUT_TOKENS = 50_000
# the kind of text that an adapted model (`--init-from`) reads beside the new text
GENERAL = "general"
# An adapted model is trained with the settings of the training before it (the sections
# `_KEPT`, without `_NOT_KEPT`, which are of a run), at half of its learning rate: its
# output layer and encoder are near their end.
_KEPT = ("encoder", "output_layer", "train", "optimiser")
_NOT_KEPT = {f"train.{name}" for name in ("epochs", "updates", "mix_shards", "seed")}
_SLOWER = 0.5
# Options that decide the content of the output: a recipe that goes on needs the same.
_FIXED = (
    "text",
    "held_out",
    "leave_out",
    "vectors",
    "fasttext",
    "targets",
    "init_from",
    "general",
    "general_share",
)


class Recipe:
    """The steps to a model; `given` is the command line.

    Raises `InputError` for what cannot be used of it, before anything is made.
    """

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.output: Path = given.output
        self.record = self.output / "begun.json"
        self.corpus = self.output / "corpus"
        self.sets = [
            *given.set,
            f"data.corpus={self.corpus}",
        ]  # settings that `--set` gives the training
        self.vectors = self.target_vectors = given.vectors or str(
            self.output / "vectors.bin"
        )
        self.targets = given.targets
        self.adapted = str(
            self.output / "adapt.toml"
        )  # written where a model is adapted without --config
        self.general: str | None = None
        self.texts = list(given.text)
        self.held_out = list(given.held_out)
        self.model = (
            None if given.init_from is None else read_model_directory(given.init_from)
        )
        if self.model is not None:
            self._start_from_model()
        if any(each.partition("=")[0].strip() == "data.corpus" for each in given.set):
            raise InputError(
                "--set data.corpus: the corpus is made here, of the text: leave it out"
            )
        if given.fasttext and (given.vectors or self.model):
            raise InputError(
                "--fasttext is for word vectors that are trained here, without --vectors and --init-from"
            )
        if given.targets not in TRANSFORMS:
            raise InputError(
                f"--targets must be one of {', '.join(TRANSFORMS)}, not {given.targets}"
            )
        if given.max_time is not None:
            parse_duration(given.max_time)
        if (given.vectors or self.model) and not (
            self.corpus / "vectors/target.json"
        ).exists():
            open_word_vectors(self.vectors, only=[])
        self.config = (
            given.config or self._begun().get("config") or self._suitable_config()
        )
        self.writes_config = self.config == self.adapted and not given.config
        if not self.writes_config:
            load_config(self.config, self.sets)

    def begin(self) -> None:
        """Write down how the output was begun, and the config of a model that is
        adapted without one.

        Raises `InputError` when the output was begun otherwise, or by something else,
        or for settings that cannot be.
        """
        now = {name: getattr(self.given, name) for name in _FIXED} | {
            "config": self.config
        }
        not_made = {".begun.json.lock", self.record.name, Path(self.adapted).name}
        if any(each.name not in not_made for each in self.output.iterdir()):
            if not self.record.exists():
                raise InputError(
                    f"{self.output} is not empty, and not begun by this command: choose another directory"
                )
            # options of fastText decide nothing until it has trained: a mistake in them
            # can be mended
            not_used = (
                {} if Path(self.vectors).exists() else {"fasttext": self.given.fasttext}
            )
            if differing := differences(self._begun() | not_used, now):
                raise InputError(
                    f"{self.output} was begun with another {', '.join(differing)}: choose another one"
                )
        write_json(self.record, now)
        if self.writes_config:
            self._write_adapted()
            load_config(self.config, self.sets)

    def _begun(self) -> dict[str, Any]:
        return read_json(self.record) if self.record.exists() else {}

    def _suitable_config(self) -> str:
        """The config that suits the text and the time; says which."""
        if self.model is not None:
            return self.adapted
        words = self._words()
        gpu = accelerator() is not None
        limit = self.given.max_time
        large = words >= SMALL_FROM_WORDS and (
            gpu or limit is None or parse_duration(limit) >= SMALL_FROM_SECONDS
        )
        name = ("gpu.toml" if gpu else "small.toml") if large else "fast.toml"
        time = limit or "no limit of time"
        print(
            f"config: {name}, for about {words / 1e6:,.1f} million words and {time} (--config takes another)"
        )
        return str(CONFIGS / name)

    def _words(self) -> int:
        """About how many words the text has, by the bytes that a word takes at its
        beginning.
        """
        files = find_named_files(self.given.text)
        with open_binary(next(iter(files))) as text:
            start = text.read(SAMPLE_BYTES)
        return (
            sum(map(estimate_text_bytes, files))
            * len(start.split())
            // max(1, len(start))
        )

    def steps(self) -> list[Step]:
        """The steps in their order."""
        given = self.given
        corpus = self.corpus
        steps = []
        if self.general is not None:
            general = self.output / "general.txt"
            held_out = self.output / "general_held_out.txt"
            share = given.general_share / (1 - given.general_share)
            tokens = round(share * self._words())
            steps.append(
                Step(
                    "general text",
                    lambda: self._write_text(general, max(1, tokens)),
                    general,
                )
            )
            steps.append(
                Step(
                    "general text, held out",
                    lambda: self._write_text(held_out, None),
                    held_out,
                )
            )
        options = ["--held-out", *self.held_out] if self.held_out else []
        options += ["--leave-out", *given.leave_out] if given.leave_out else []
        build = ["data_scripts.build_corpus", *self.texts, corpus, *options]
        steps.append(
            Step("a corpus of the text", lambda: build, corpus / "corpus.json")
        )
        if not (given.vectors or self.model):
            fasttext = [
                "data_scripts.train_fasttext",
                corpus,
                self.vectors,
                *shlex.split(given.fasttext or ""),
            ]
            steps.append(
                Step(
                    "fastText vectors of the corpus",
                    lambda: fasttext,
                    Path(self.vectors),
                )
            )
        like = ["--like", given.init_from] if self.model else []
        inputs = [
            "data_scripts.build_vectors",
            corpus,
            self.vectors,
            "--name",
            "input",
            *like,
        ]
        targets = [
            "data_scripts.build_vectors",
            corpus,
            self.target_vectors,
            "--name",
            "target",
        ]
        targets += ["--post-process", self.targets]
        steps.append(
            Step(
                "input vectors of every word type",
                lambda: inputs,
                corpus / "vectors/input.json",
            )
        )
        steps.append(
            Step(
                "target vectors of every word type",
                lambda: targets,
                corpus / "vectors/target.json",
            )
        )
        steps.append(Step("training", self._train))
        if given.bundle:
            steps.append(Step("word vectors for the model directory", self._bundle))
        return steps

    def _train(self) -> Sequence[object]:
        corpus = Corpus(self.corpus)
        config = load_config(self.config, self.sets)
        streams = _streams_for(corpus.train_tokens, config)
        fewer = [f"train.streams={streams}"] if streams < config.train.streams else []
        sets = [f"--set={each}" for each in [*self.sets, *fewer]]
        begun = ["--resume"] if RunDirectory(self.output).config.exists() else []
        if self.model is not None and not begun:
            begun = ["--init-from", self.given.init_from]
        time = (
            [] if self.given.max_time is None else ["--max-time", self.given.max_time]
        )
        return ["pretrain", self.config, self.output, *sets, *begun, *time]

    def _bundle(self) -> None:
        """Put the file of the word vectors into the model directory; a link of those
        that were trained here.
        """
        source = Path(self.vectors)
        target = RunDirectory(self.output).model / Path(self.vectors).name
        if source.is_file() and not target.exists():
            with atomic_path(target) as partial:
                partial.unlink()
                (shutil.copyfile if self.given.vectors or self.model else os.link)(
                    source, partial
                )

    def _start_from_model(self) -> None:
        """Take the word vectors, the kind of targets and the general text of the model
        to go on from.
        """
        assert self.model is not None
        assert self.model.path is not None
        targets = self.model.output_layer.target_vectors(str(self.model.path))
        if targets is None:
            raise InputError(
                f"{self.given.init_from} was not trained against word vectors: use `python -m pretrain`"
            )
        if not self.given.config and "schedule.base" not in self._training().get(
            "recipe", {}
        ):
            raise InputError(
                f"{self.given.init_from} does not say how it was trained: give --config"
            )
        if not 0 < self.given.general_share < 1:
            raise InputError(
                "--general-share must be above 0 and below 1 (--general none leaves general text out)"
            )
        source = self.model.word_vectors
        bundled = self.model.path / source.file_name
        self.vectors = self.given.vectors or (
            str(bundled) if bundled.exists() else source.origin
        )
        packed = self.model.training.get(
            "packed", {}
        )  # whose vectors stand for the ones that it was trained against
        same = targets.fingerprint in (
            source.fingerprint,
            packed.get("word_vectors_fingerprint"),
        )
        self.target_vectors = self.vectors if same else targets.origin
        self.targets = targets.post_processing
        self.general = self.given.general
        if self.general is None:
            corpus = str(self._training().get("corpus"))
            there = (Path(corpus) / "corpus.json").exists() or (
                self.output / "general.txt"
            ).exists()
            self.general = corpus if there else "none"
            print(
                f"general text: {corpus if there else f'none, since {corpus} is not here (give --general CORPUS)'}"
            )
        self.general = None if self.general == "none" else self.general
        new = {split_name(text)[0] or "new" for text in self.texts}
        if GENERAL in new:
            raise InputError(
                f"{GENERAL}=… is what general text is called here: give your text another name"
            )
        self.texts = [
            text if split_name(text)[0] else f"new={text}" for text in self.texts
        ]
        name = new.pop() if len(new) == 1 else "new"
        self.held_out = [
            text if split_name(text)[0] else f"{name}={text}" for text in self.held_out
        ]
        if self.general is not None:
            self.texts.append(f"{GENERAL}={self.output / 'general.txt'}")
            self.held_out.append(f"{GENERAL}={self.output / 'general_held_out.txt'}")

    def _training(self) -> Mapping[str, Any]:
        """What the model says of its training; of directions that were trained apart
        and joined, of the first.
        """
        assert self.model is not None
        training: Mapping[str, Any] = self.model.training
        while isinstance(half := training.get("forward"), Mapping):
            training = half
        return training

    def _write_text(self, path: Path, tokens: int | None) -> list[object]:
        """A sample of the general text, or of its held-out part (`tokens` None), with
        its kinds in the proportions in which the model's training read them.
        """
        assert self.general is not None
        weights = self._training().get("recipe", {}).get("data.sources", {})
        known = [
            f"{name}={weights[name]}"
            for name in Corpus(self.general).sources
            if name in weights
        ]
        sources = ["--sources", *known] if known and tokens else []
        of_split = (
            ["--tokens", tokens]
            if tokens
            else ["--tokens", GENERAL_HELD_OUT_TOKENS, "--held-out"]
        )
        return ["data_scripts.write_text", self.general, path, *of_split, *sources]

    def _write_adapted(self) -> None:
        """Write the settings of going on with the model."""
        recipe = self._training()["recipe"]
        settings: dict[str, dict[str, Any]] = {section: {} for section in _KEPT}
        for key, value in recipe.items():
            section, _, name = key.partition(".")
            if section in _KEPT and key not in _NOT_KEPT and value is not None:
                settings[section][name] = value
        assert self.model is not None
        directions = list(self.model.encoder.directions)
        settings["train"] |= {
            "directions": directions,
            "epochs": 2.0,
            "mix_shards": 20,
            "precision": "auto",
        }
        rate = _SLOWER * recipe["schedule.base"]
        settings["schedule"] = {
            "base": rate,
            "linear_warmup_updates": 20,
            "linear_cooldown": 0.6,
        }
        lines = []
        for section, values in settings.items():
            lines += [
                f"[{section}]",
                *(f"{name} = {toml_value(each)}" for name, each in values.items()),
                "",
            ]
        with atomic_path(self.adapted) as partial:
            partial.write_text("\n".join(lines), encoding="utf-8")


def _streams_for(tokens: int, config: RunConfig) -> int:
    """The streams of the config, or fewer where the text is too small for them."""
    enough = tokens // (config.train.window * UPDATES_AT_LEAST)
    return min(config.train.streams, max(STREAMS_AT_LEAST, enough))
