"""The command `python -m pretrain.recipe.tables CORPUS OUT`: the paper's Tables 2 and 3 in miniature.

The small twins of the paper's configs are trained on one corpus, one after the other, for the same time or the same
number of words; a suite of probes is run for each; and the table is printed (Li et al. 2019, Sections 4 and 5.1).
`make tables` calls it. Safe to interrupt; goes on by the same command.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from elmoc.corpus import Corpus
from elmoc.errors import InputError, run_command
from elmoc.files.checksums import fingerprint
from elmoc.model_directory import read_model_directory
from elmoc.settings import parse_duration
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.table import VectorTable
from pretrain.config import RunConfig, load_config
from pretrain.recipe.begun import begun
from pretrain.recipe.options import require_no_corpus
from pretrain.recipe.steps import Step, run_steps, seconds_of_training, training_command
from pretrain.recipe.tables_report import SUITE_REPORT, read_word_accuracy, text_of
from pretrain.recipe.tables_rows import MADE_HERE, OF_CORPUS, OF_ELMO, SYSTEMS, GivenSettings
from pretrain.run.directory import RunDirectory
from pretrain.setup import open_setup

ALONE = "word_vectors"
"""The folder of probes that has what the suite writes of word vectors alone."""
AT_THE_END = 10**9
"""Updates between two evaluations: there is one before the first update, and one after the last."""


@dataclass(frozen=True, kw_only=True)
class Tables:
    """What the command is given (see its help), and its steps."""

    corpus: Path
    output: Path
    vectors: str
    suite: Path
    systems: tuple[str, ...]
    quick: bool
    data: Path | None
    max_time: str | None
    words: int | None
    sets: GivenSettings

    @property
    def options(self) -> dict[str, Any]:
        """What stays the same as long as it goes on.

        Not the suite, whose results are known by their content; nor settings of one row, which its run knows.
        """
        return {
            "corpus": str(self.corpus),
            "vectors": self.vectors,
            "max_time": self.max_time,
            "words": self.words,
            "sets": self.sets.of_all,
        }

    def steps(self) -> list[Step]:
        """The steps in their order."""
        steps = [
            self._table_step("input", self.vectors),
            self._table_step("target", self.vectors),
        ]
        chosen = {name: SYSTEMS[name] for name in self.systems}
        needed = {table for system in chosen.values() for table in system.needs}
        if "random" in needed:
            steps.append(self._table_step("random", "random:1:300"))
        if any(system.reads_subwords for system in chosen.values()):
            steps.append(Step("the corpus in subwords", self._build_subwords, self.subwords / "corpus.json"))
        steps.append(Step("a look at the settings of every row", self._check_rows))
        steps.append(Step("probes of word vectors alone", self._suite_alone))  # what is wrong with the suite shows here
        if OF_CORPUS in needed:
            own = self.output / "vectors.bin"
            steps.append(Step("fastText vectors of the corpus", lambda: self._train_fasttext(own), own))
            steps.append(self._table_step(self.table_of(OF_CORPUS), own))
        for name, system in chosen.items():
            if name in self.reading_elmo[:1]:
                steps.append(self._table_step(self.table_of(OF_ELMO), self.run_of("elmo") / "model"))
            train, seconds = partial(self._train, name), seconds_of_training(self.run_of(name), self.max_time)
            steps.append(Step(f"training {name}", train, finished=self.report_of(name), seconds=seconds))
            if system.reads_subwords:
                steps.append(Step(f"whole words of {name}", partial(self._word_accuracy, name)))
            steps.append(Step(f"probes of {name}", partial(self._suite, name)))  # what is done it passes over itself
        return steps

    @property
    def reading_elmo(self) -> list[str]:
        """The rows that read the character CNN of the row `elmo`."""
        return [name for name in self.systems if OF_ELMO in SYSTEMS[name].needs]

    @property
    def subwords(self) -> Path:
        """The corpus of subwords."""
        return self.output / "subwords"

    def corpus_of(self, name: str) -> Path:
        """The corpus that a row is trained on: that of subwords, or that of words."""
        return self.subwords if SYSTEMS[name].reads_subwords else self.corpus

    def require_same_corpus(self) -> None:
        """Raise an `InputError` where a row that is done, or the corpus of subwords, is of another corpus."""
        advice = "take that one, or choose another OUT"
        corpora = {path: Corpus(path) for path in (self.corpus, self.subwords) if (path / "corpus.json").exists()}
        if len({corpus.record.train_sentences for corpus in corpora.values()}) > 1:
            raise InputError(f"{self.subwords} was made of another corpus than {self.corpus} is now: {advice}")
        for name in SYSTEMS:
            corpus = corpora.get(self.corpus_of(name))
            if corpus is None or not self.report_of(name).exists():
                continue
            before = read_model_directory(self.run_of(name)).training["corpus_tokens"]
            if corpus.train_tokens != before:
                raise InputError(
                    f"the row {name} was trained on {before:,} tokens, and {corpus.path} has {corpus.train_tokens:,}: "
                    f"{advice}"
                )

    def table_of(self, name: str) -> str:
        """What the table of the corpus is called that configs call `name`."""
        return f"{name}-{fingerprint(str(self.output.resolve()).encode())[:8]}" if name in MADE_HERE else name

    def run_of(self, name: str) -> Path:
        """The run directory of a row."""
        return self.output / "runs" / name

    def report_of(self, name: str) -> Path:
        """What the suite writes at its end of a row, or of word vectors alone."""
        return self.output / "probes" / name / SUITE_REPORT

    def _table_step(self, name: str, origin: str | Path) -> Step:
        return Step(f"vectors {name} of every word type", partial(self._table, name, str(origin)))

    def _table(self, name: str, origin: str) -> Sequence[object] | None:
        """Make a table, unless the corpus has it; an `InputError` where that is of other vectors, or post-processed."""
        if (self.corpus / f"vectors/{name}.json").exists():
            require_table(self.corpus, name, origin)
            return None
        return ["data_scripts.build_vectors", self.corpus, origin, "--name", name]

    def _train_fasttext(self, path: Path) -> Sequence[object]:
        return ["data_scripts.train_fasttext", self.corpus, path]

    def _build_subwords(self) -> Sequence[object]:
        return ["data_scripts.build_subwords", self.corpus, self.subwords]

    def _config(self, name: str) -> tuple[RunConfig, list[str]]:
        """The config of a row, and the settings in which it differs from its file."""
        system = SYSTEMS[name]
        here = [f"data.corpus={self.corpus_of(name)}", f"evaluation.every_updates={AT_THE_END}"]
        sets = [*here, *system.sets, *self.sets.of(name)]
        data = load_config(system.path, sets, quiet=True).data
        for key, table in (("input_vectors", data.input_vectors), ("target_vectors", data.target_vectors)):
            if table in MADE_HERE:
                sets.append(f"data.{key}={self.table_of(table)}")
        return load_config(system.path, sets, quiet=True), sets

    def _check_rows(self) -> None:
        """Open every row, with the input vectors in place of those that are still to be made.

        What is wrong is said now, and not after hours; also of a row that was begun with other settings, or that is
        still to be trained and does not fit into memory.
        """
        made_here = {self.table_of(name) for name in MADE_HERE}

        def there(table: str) -> str:
            return "input" if table in made_here and not (self.corpus / f"vectors/{table}.json").exists() else table

        for name in self.systems:
            try:
                config, _ = self._config(name)
                self._require_same(name, config)
                data = replace(
                    config.data,
                    input_vectors=there(config.data.input_vectors),
                    target_vectors=there(config.data.target_vectors),
                )
                setup = open_setup(replace(config, data=data))
                if not self.report_of(name).exists():
                    setup.require_memory()
            except InputError as error:
                raise InputError(f"the row {name}: {error}") from None

    def _require_same(self, name: str, config: RunConfig) -> None:
        """Raise an `InputError` where a row was begun, or is done, with other settings than those of `config`."""
        run = RunDirectory(self.run_of(name))
        if run.config.exists():
            of_words = [] if self.words is None else ["train.updates"]  # they follow from the words, which are the same
            if differing := run.differing_settings(config, but=of_words):
                raise InputError(
                    f"it was begun with other values of {', '.join(differing)}: give the same to go on, or choose "
                    "another OUT"
                )

    def _train(self, name: str) -> Sequence[object]:
        config, sets = self._config(name)
        if self.words is not None:
            corpus = config.data.corpus
            share = self.words / Corpus(self.corpus).train_tokens  # of the text, whatever it is written in
            tokens = share * Corpus(corpus).train_tokens
            sets.append(f"train.updates={max(1, round(tokens / (config.train.streams * config.train.window)))}")
        return training_command(SYSTEMS[name].path, self.run_of(name), sets, self.max_time)

    def _word_accuracy(self, name: str) -> Sequence[object] | None:
        """None where it was measured, or cannot be: by an encoder without a state, or a softmax over some units."""
        run, (config, _) = self.run_of(name), self._config(name)
        cannot = not config.encoder.carries_state or getattr(config.output_layer, "types", False)
        if cannot or read_word_accuracy(run, read_model_directory(run).training) is not None:
            return None
        return ["pretrain.word_accuracy", run, "--corpus", self.corpus]

    def _suite(self, name: str) -> Sequence[object]:
        return self._suite_command(name, "--model", self.run_of(name))

    def _suite_alone(self) -> Sequence[object]:
        """The baseline that all rows share: all that the suite reads but a model is opened before a row is trained."""
        return self._suite_command(ALONE, "--inputs", "vectors")

    def _suite_command(self, name: str, *what: object) -> Sequence[object]:
        out = self.report_of(name).parent
        more = [*(["--quick"] if self.quick else []), *([] if self.data is None else ["--data", self.data])]
        options = ["--vectors", self.vectors, "--out", out, "--baseline", out.parent / "baseline", *more]
        return ["downstream", "suite", self.suite, *what, "--corpus", self.corpus, *options]


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pretrain.recipe.tables",
        description="Train the small twins of the paper's configs on one corpus, run probes for each, and print Tables "
        "2 and 3 in miniature. Safe to interrupt; goes on by the same command.",
    )
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="corpus directory; it gets the tables of vectors")
    parser.add_argument("output", type=Path, metavar="OUT", help="where runs and results go")
    parser.add_argument("--vectors", required=True, metavar="FILE", help="fastText vectors, in place of Common Crawl's")
    parser.add_argument("--suite", required=True, type=Path, metavar="SUITE.toml", help="the probes (docs/suite.md)")
    parser.add_argument("--quick", action="store_true", help="run the quick suite")
    parser.add_argument("--data", type=Path, metavar="DIR", help="what paths of data in the suite are relative to")
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--max-time", metavar="TIME", help="of each training, e.g. 15m")
    length.add_argument("--words", type=int, metavar="N", help="that each training reads")
    parser.add_argument(
        "--rows",
        default=",".join(SYSTEMS),
        metavar="NAME,…",
        help="those to make, in order (default: %(default)s)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="[ROW:]SECTION.KEY=VALUE",
        help="a setting of every training, or of that of one row, such as elmo_a:output_layer.cutoffs=[500,2000]",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    arguments = parser().parse_args(argv)
    return run_command(lambda: make_tables(arguments))


def make_tables(arguments: argparse.Namespace) -> None:
    """Make the tables as the parsed command line says; raises `InputError` where a step fails."""
    systems = tuple(dict.fromkeys(arguments.rows.split(",")))
    for name in systems:
        if name not in SYSTEMS:
            raise InputError(f"--rows: {name!r:.50} is not a row; choose from {', '.join(SYSTEMS)}")
    sets = GivenSettings.parse(arguments.set)
    given = chain(sets.of_all, *sets.of_row.values())
    require_no_corpus(given, f"all rows are trained on the text of CORPUS ({arguments.corpus})")
    if arguments.words is not None and arguments.words < 1:
        raise InputError(f"--words must be at least 1, not {arguments.words}")
    if arguments.max_time is not None:
        parse_duration(arguments.max_time)
    if not arguments.suite.is_file():
        raise InputError(f"--suite {arguments.suite} does not exist: check the name")
    Corpus(arguments.corpus).require_words()
    for name in ("input", "target"):  # what is wrong is said now, and not after hours
        if (arguments.corpus / f"vectors/{name}.json").exists():
            require_table(arguments.corpus, name, arguments.vectors)
    tables = Tables(
        corpus=arguments.corpus,
        output=arguments.output,
        vectors=arguments.vectors,
        suite=arguments.suite,
        systems=systems,
        quick=arguments.quick,
        data=arguments.data,
        max_time=arguments.max_time,
        words=arguments.words,
        sets=sets,
    )
    for name in tables.reading_elmo[:1]:
        if "elmo" not in systems[: systems.index(name)] and not tables.report_of("elmo").exists():
            raise InputError(f"--rows: {name} reads the character CNN of elmo: put elmo before it")
    with begun(arguments.output, "python -m pretrain.recipe.tables", tables.options):
        tables.require_same_corpus()
        run_steps(tables.steps())
    rows = {name: (tables.run_of(name), tables.report_of(name)) for name in SYSTEMS if tables.report_of(name).exists()}
    tokens = Corpus(arguments.corpus).train_tokens
    print("\n" + text_of(rows, alone=tables.report_of(ALONE), tokens=tokens))


def require_table(corpus: Path, name: str, origin: str) -> None:
    """Raise an `InputError` where a table of a corpus does not hold the vectors that `origin` names, as they are."""
    source = VectorTable(Corpus(corpus), name).source
    if source.fingerprint != open_word_vectors(origin, only=[]).fingerprint:
        raise InputError(
            f"{corpus}/vectors/{name}.npy was not made from {origin}: remove it and its .json, or take the vectors and "
            "the OUT that it was made with"
        )
    if source.post_processing != "none":
        raise InputError(
            f"{corpus}/vectors/{name}.npy was post-processed ({source.post_processing}), and these rows take vectors "
            "as they are: build another corpus directory of the text, or remove it and its .json"
        )


if __name__ == "__main__":
    sys.exit(main())
