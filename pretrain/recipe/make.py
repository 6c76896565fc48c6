"""Making a model, from text to a model by one call: which steps lead there, and with
which settings is it trained?
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from torch import cuda

from elmoc.corpus import Corpus
from elmoc.errors import InputError, quiet, say, warn
from elmoc.files.records import read_json, write_json
from elmoc.files.writing import atomic_directory, locked
from elmoc.jobs import run_job
from elmoc.settings import checked, convert, parse_duration
from elmoc.text.documents import read_documents, whole_files
from elmoc.text.named_files import find_named_files
from elmoc.word_vectors.opening import open_word_vectors
from pretrain.config import CONFIGS, differences, load_config
from pretrain.options import TrainOptions
from pretrain.recipe.adapting import (
    GENERAL,
    GENERAL_HELD_OUT,
    GENERAL_TEXT,
    Material,
    material_of_model,
)
from pretrain.recipe.options import ContentOptions, RecipeOptions
from pretrain.trained_run import TrainedRun, train_encoder

# small.toml (9.8 million parameters) reads a quarter to a half of the words that
# fast.toml (2.5 million) reads in the same time, and is ahead once it has read some ten
# million: in twenty minutes of one core it read 1.5 million and was behind (reciprocal
# rank .324 and .332); in an hour of two fast cores 30 million, and was ahead (.374 and
# .360, of other text). At its slowest, 1,700 words/s of two cores, ten million words
# take 100 minutes.
SMALL_FROM_WORDS = 10_000_000
SMALL_FROM_SECONDS = 2 * 3600
# An epoch has at least this number of updates: of a small text fewer streams are read
# at once.
UPDATES_AT_LEAST = 40
STREAMS_AT_LEAST = 4
# Vectors of a teacher, and these beside the other word vectors.
TAUGHT = "teacher.safetensors"
JOINED = "vectors.json"
# Held-out tokens of general text, at most, that an adapted model is evaluated on.
GENERAL_HELD_OUT_TOKENS = 50_000
# An epoch of an adapted model reads general text at most so often, where there is less
# than its share.
MOST_TIMES_GENERAL = 3.0


def make_model(
    text: Path | str | Sequence[Path | str],
    out: Path | str,
    options: RecipeOptions = RecipeOptions(),
) -> TrainedRun:
    """Make a model from text, or adapt one to new text (`init_from`).

    A corpus is built, fastText is trained on it (or word vectors are given), two vector
    tables are made, and the encoder is trained. Each step but the training is a process
    of its own. Ctrl-C is passed on to the step that runs, which saves; the same call
    goes on then. Steps that are done are not done again.

    The page docs/train.md describes it.

    Args:
        text: files of any kind that `read_documents` takes, folders or globs; NAME=PATH
            names the kind of a text; or the corpus directory that `make_corpus` made of
            text that is in memory. Raw text is tokenised; tokenised text has one
            sentence a line, words split on white space, and a blank line between
            documents.
        out: the run directory to make, or to go on with.
        options: see `RecipeOptions`; the defaults suit the text and the machine.

    Returns:
        The run, with the path of its model.

    Raises:
        InputError: an option is impossible, `out` holds something else or was begun
            with other options, or a step failed. The message says what to do.
        KeyboardInterrupt: the call was asked to stop, and has saved.

    Example:
        run = make_model("novels.txt", "runs/novels", RecipeOptions(max_time="20m"))
        elmo = ElmoC.from_pretrained(run.model)
    """
    texts = [text] if isinstance(text, Path | str) else text
    are_paths = isinstance(texts, Sequence) and all(
        isinstance(each, Path | str) for each in texts
    )
    if not are_paths or not texts:
        raise InputError(
            "no text is named: name a file at least, or the corpus directory that "
            "make_corpus makes of text in memory (processes that are started here "
            "read it)"
        )
    recipe = Recipe(list(map(str, texts)), Path(out), options)
    with locked(recipe.record):
        recipe.begin()
        trained: TrainedRun = run_steps(recipe.steps())
    say(f"give {out} wherever a model is asked for; its card is {out}/model/README.md")
    return trained


@dataclass(frozen=True)
class Step:
    """One step of a recipe.

    title: what it makes, in words.
    run: does it.
    output: the file that is there once it is done; without one, the step is run every
        time.
    """

    title: str
    run: Callable[[], Any]
    output: Path | None = None


def run_steps(steps: Sequence[Step]) -> Any:
    """Run the steps whose output is not there; returns the result of the last one.

    Raises:
        InputError: a step failed.
        KeyboardInterrupt: a step was asked to stop, and has saved.
    """
    result = None
    for number, step in enumerate(steps, 1):
        place = f"step {number} of {len(steps)}"
        # Commands write their output whole or not at all: what is there is finished.
        if step.output is not None and step.output.exists():
            say(f"── {place}: {step.title}: done before")
            continue
        say("")
        say(f"── {place}: {step.title}")
        result = step.run()
    say(f"── all {len(steps)} steps are done")
    return result


@dataclass(frozen=True, kw_only=True)
class Begun(ContentOptions):
    """The content of `begun.json`: all that decides what is made.

    text: the files of text, as they were given.
    config: the config of the training; None where the model that is adapted gives it.
    """

    text: list[str]
    config: str | None


class Recipe:
    """The steps to a model.

    Args:
        text: files of tokenised text, each PATH or NAME=PATH.
        output: the run directory.
        options: see `RecipeOptions`.

    Raises:
        InputError: for impossible options, before anything is made.
    """

    def __init__(self, text: list[str], output: Path, options: RecipeOptions) -> None:
        self.record = output / "begun.json"
        self._text = text
        self._output = output
        self._options = options = checked(options)
        # Words of general text that are read for each new one.
        self._general_a_word = options.general_share / (1 - options.general_share)
        self._corpus = output / "corpus"
        is_corpus = len(text) == 1 and (Path(text[0]) / "corpus.json").exists()
        self._given = Corpus(text[0]) if is_corpus else None
        if options.init_from is None:
            vectors = options.vectors or str(output / "vectors.bin")
            self._material = Material(
                texts=text,
                held_out=options.held_out,
                vectors=vectors,
                target_vectors=vectors,
                targets=options.targets,
            )
        else:
            self._material = material_of_model(options.init_from, text, output, options)
        self._makes_vectors = options.vectors is None and options.init_from is None
        self._require_possible()
        self._before = None
        self.config = options.config
        if self.record.exists():
            self._before = convert(
                read_json(self.record), Begun, where=str(self.record)
            )
            self.config = self.config or self._before.config
        if self.config is None and options.init_from is None:
            self.config = self._suitable_config()
        # A mistake in the settings is told before the corpus is built.
        config = load_config(self.config or self._material.settings, options.overrides)
        self._run_config = replace(
            config, data=replace(config.data, corpus=str(self._corpus))
        )

    def _require_possible(self) -> None:
        """Raise an `InputError` for options that do not go together, a wrong time, or
        word vectors that cannot be read.
        """
        options = self._options
        keys = (each.partition("=")[0].strip() for each in options.overrides)
        if "data.corpus" in keys:
            raise InputError(
                "data.corpus cannot be set, since the corpus is made here: leave it out"
            )
        of_text = (
            options.init_from,
            options.held_out,
            options.leave_out,
            options.keep,
            options.field,
            options.tokenised != "auto",
        )
        if self._given and any(of_text):
            raise InputError(
                f"{self._given.path} is a corpus, of which nothing can be held out or "
                "left out, which is tokenised, and which cannot be mixed with other "
                "text: give the text, or leave out init_from, held_out, leave_out, "
                "keep, field and tokenised"
            )
        if options.general is not None and options.init_from is None:
            raise InputError("general is for init_from: give the text itself")
        if options.fasttext and not self._makes_vectors:
            raise InputError(
                "fasttext is for word vectors that are trained here, without vectors "
                "and init_from"
            )
        if options.max_time is not None:
            parse_duration(options.max_time)
        # Once the tables are made, the word vectors may be moved away.
        tables_are_made = (self._corpus / "vectors/target.json").exists()
        if not self._makes_vectors and not tables_are_made:
            open_word_vectors(self._material.vectors, only=[])

    def begin(self) -> None:
        """Write down how the output was begun.

        Raises:
            InputError: the output was begun otherwise, or by something else.
        """
        names = (each.name for each in fields(ContentOptions))
        content = {name: getattr(self._options, name) for name in names}
        now = Begun(text=self._text, config=self.config, **content)
        # Before the first step is done, a mistake can be mended: the record is there,
        # its checksum and its lock.
        if any(self.record.name not in each.name for each in self._output.iterdir()):
            before = self._before
            if before is None:
                raise InputError(
                    f"{self._output} is not empty, and not begun by this command: "
                    "choose another directory"
                )
            # Options of fastText decide nothing until it has trained: a mistake in them
            # can be mended.
            if not Path(self._material.vectors).exists():
                before = replace(before, fasttext=now.fasttext)
            differing = differences(asdict(before), asdict(now))
            if differing:
                raise InputError(
                    f"{self._output} was begun with another {', '.join(differing)}: "
                    "choose another one"
                )
        warn_of_newer(
            self._material.texts
            + list(self._material.held_out)
            + list(self._options.leave_out),
            self._corpus,
        )
        write_json(self.record, asdict(now))

    def _suitable_config(self) -> str:
        """The config that suits the text and the time; says which."""
        words = self._words(SMALL_FROM_WORDS)
        limit = self._options.max_time
        has_time = limit is None or parse_duration(limit) >= SMALL_FROM_SECONDS
        # A GPU is fast enough for its config in any time.
        fits = {"gpu.toml": cuda.is_available(), "small.toml": has_time}
        large = next((name for name, does in fits.items() if does), "fast.toml")
        is_large = words >= SMALL_FROM_WORDS
        name = large if is_large else "fast.toml"
        say(
            f"config: {name}, for {words / 1e6:,.1f} million words"
            f"{' or more' if is_large else ''} and {limit or 'no limit of time'} "
            "(config names another)"
        )
        return str(CONFIGS / name)

    def _words(self, most: int | None = None) -> int:
        """How many words the text has, as blanks divide it, up to `most`."""
        if self._given:
            return self._given.train_tokens - 2 * self._given.record.train_sentences
        with quiet():
            texts = whole_files(list(find_named_files(self._text)), self._options.field)
            documents = chain.from_iterable(map(read_documents, texts))
            sentences = chain.from_iterable(each.sentences() for each in documents)
            return sum(1 for _ in islice(chain.from_iterable(sentences), most))

    def steps(self) -> list[Step]:
        """The steps in their order. Other rooms' commands are processes of their own,
        since rooms do not import each other.
        """
        material = self._material
        corpus = self._corpus
        steps = self._steps_of_general_text()
        text = {
            "files": material.texts,
            "corpus": corpus,
            "tokenised": self._options.tokenised,
            "field": self._options.field,
            "keep": self._options.keep,
            "held_out": material.held_out,
            "leave_out": self._options.leave_out,
        }
        made = corpus / "corpus.json"
        if self._given:
            link = partial(link_corpus, self._given.path, corpus)
            steps.append(Step("the corpus, by links to its files", link, made))
        else:
            steps.append(job_step("a corpus of the text", "build_corpus", text, made))
        if self._makes_vectors:
            vectors = {"corpus": corpus, "output": material.vectors}
            vectors |= self._options.fasttext or {}
            made = Path(material.vectors)
            title = "fastText vectors of the corpus"
            steps.append(job_step(title, "train_fasttext", vectors, made))
        # An adapted model reads its inputs as they were transformed before; targets are
        # transformed anew for the new text.
        like = self._options.init_from
        inputs = material.vectors
        targets = material.target_vectors
        if self._options.teacher is not None:
            steps += self._steps_of_teacher(self._options.teacher)
            inputs = targets = str(self._output / JOINED)
            like = None
        tables: dict[str, dict[str, Any]] = {
            "input": {"origin": inputs, "like": like},
            "target": {"origin": targets, "transform": material.targets},
        }
        for name, table in tables.items():
            table |= {"corpus": corpus, "name": name}
            title = f"{name} vectors of every word type"
            made = corpus / f"vectors/{name}.json"
            steps.append(job_step(title, "build_vectors", table, made))
        return [*steps, Step("training", self._train)]

    def _steps_of_teacher(self, teacher: str) -> list[Step]:
        """Vectors of a teacher, which are joined with the word vectors."""
        taught = self._output / TAUGHT
        vectors = {"corpus": self._corpus, "model": teacher, "output": taught}
        both = self._output / JOINED
        origins = [self._material.vectors, str(taught)]
        joined = {"corpus": self._corpus, "origins": origins, "output": both}
        title = f"vectors of every word type by {teacher}"
        return [
            job_step(title, "teacher_vectors", vectors, taught),
            job_step("both side by side", "join_vectors", joined, both),
        ]

    def _steps_of_general_text(self) -> list[Step]:
        """Samples of the general text, and of its held-out part."""
        general = self._material.general
        if general is None:
            return []
        sample = self._output / GENERAL_TEXT
        text: dict[str, Any] = {
            "corpus": general,
            "target": sample,
            # Once it is there, nothing need be counted, and the corpus may be away.
            "tokens": 1 if sample.exists() else self._general_tokens(Corpus(general)),
        }
        held_out: dict[str, Any] = {
            "corpus": general,
            "target": self._output / GENERAL_HELD_OUT,
            "tokens": GENERAL_HELD_OUT_TOKENS,
            "held_out": True,
        }
        return [
            job_step("general text", "write_text", text, text["target"]),
            job_step(
                "general text, held out", "write_text", held_out, held_out["target"]
            ),
        ]

    def _general_tokens(self, general: Corpus) -> int:
        """How many tokens of a corpus, `<s>` and `</s>` too, are about the share of
        general text; a warning says where it has fewer.
        """
        there = general.train_tokens - 2 * general.record.train_sentences
        wanted = self._general_a_word * self._words()
        if wanted > there:
            warn(f"general text has {there:,} words, and {wanted:,.0f} are wanted")
        return max(1, round(wanted / there * general.train_tokens))

    def _weights(self, corpus: Corpus) -> dict[str, float]:
        """How often an adapted model reads general text, so that its share is right in
        tokens: of raw text the sample was cut by blanks.
        """
        of_general = sum(each.tokens for each in corpus.train if each.source == GENERAL)
        if self._material.general is None or not of_general:
            return {}
        wanted = self._general_a_word * (corpus.train_tokens - of_general)
        return {GENERAL: min(wanted / of_general, MOST_TIMES_GENERAL)}

    def _train(self) -> TrainedRun:
        config = self._run_config
        corpus = Corpus(self._corpus)
        enough = corpus.train_tokens // (config.train.window * UPDATES_AT_LEAST)
        streams = min(config.train.streams, max(STREAMS_AT_LEAST, enough))
        if streams < config.train.streams:
            say(
                f"the text is small: {streams} streams in place of "
                f"{config.train.streams}"
            )
        config = replace(
            config,
            data=replace(
                config.data, sources=self._weights(corpus) | config.data.sources
            ),
            train=replace(config.train, streams=streams),
        )
        options = TrainOptions(
            init_from=self._options.init_from, max_time=self._options.max_time
        )
        return train_encoder(config, self._output, options)


def warn_of_newer(texts: Sequence[str], corpus: Path) -> None:
    """Warn of text that has changed since a corpus was made of it, which stays."""
    # There may be no corpus yet, or no text any more.
    with suppress(InputError, OSError):
        made = os.path.getmtime(corpus / "corpus.json")
        newest = max(find_named_files(texts), key=os.path.getmtime)
        if os.path.getmtime(newest) > made:
            warn(
                f"{newest} is newer than {corpus}, which was made of it and stays as "
                "it is: choose another directory to read it again"
            )


def link_corpus(given: Path, corpus: Path) -> None:
    """Make a corpus directory of links to the files of another, but for its tables."""
    with atomic_directory(corpus) as partial:
        for file in given.glob("[!.]*"):
            if file.name != "vectors":
                (partial / file.name).symlink_to(file.resolve())


def job_step(title: str, command: str, options: dict[str, Any], made: Path) -> Step:
    """A step that a command of `data_scripts` does with options."""
    return Step(title, partial(run_job, f"data_scripts.{command}", options), made)
