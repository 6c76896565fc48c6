"""Tables 2 and 3 of the paper in miniature: its systems at small sizes, trained equally
long, and scored by probes.

    python -m experiments.paper_tables CORPUS OUT --vectors FILE --suite SUITE.toml
    [--max-time 15m] [--data DIR] [--quick] [--rows NAME…] [--cnn RUN]
    [--set SECTION.KEY=VALUE]…

CORPUS gets the tables of vectors; paths of the suite are relative to DIR; --quick runs
the quick suite, and --set sets something in every training.
The twins of the paper's configs (pretrain/configs/twins) are trained on one corpus, one
after the other; a suite of probes is run for each (Li et al. 2019, Sections 4 and 5.1).
What is finished is not made again, whatever is set: other settings need another OUT.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tabulate import tabulate

from elmoc.command_line import run_main
from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.jobs import run_job
from elmoc.model_directory import read_model_directory
from elmoc.settings import Meta
from elmoc.sharing.trainings import training_words
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.table import VectorTable
from pretrain import CONFIGS

# Updates between two evaluations: there is one at the end.
ONCE = 10**9
# What is shown of the metrics of a run, and how.
METRICS = {"accuracy_at_1": ".3f", "accuracy_at_10": ".3f", "perplexity": ".1f"}
# Its metrics are of subwords.
OF_SUBWORDS = "elmo_sub"


@dataclass(frozen=True)
class System:
    """A row: the config of the paper whose twin is trained, and what differs from it.

    needs: tables of vectors beside `input` and `target`.
    """

    config: str
    sets: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


SYSTEMS = {
    "elmo": System("elmo"),
    "elmo_a": System("elmo_a"),
    OF_SUBWORDS: System(OF_SUBWORDS),
    "elmo_c": System("elmo_c"),
    "elmo_c_oneb": System("elmo_c_oneb", needs=("one_billion",)),
    "elmo_c_rnd": System("elmo_c_rnd", needs=("random",)),
    "elmo_c_cnn": System("elmo_c_cnn", needs=("cnn",)),
    "elmo_c_cnn_cc": System("elmo_c_cnn_cc", needs=("cnn",)),
    "elmo_c_cc_cnn": System("elmo_c_cc_cnn", needs=("cnn",)),
    # Random input vectors, which the paper found brittle.
    "elmo_c_rnd_input": System("elmo_c", ("data.input_vectors=random",), ("random",)),
    # The output layer of this project's own.
    "contrastive": System("elmo_c", ("output_layer.kind=contrastive",)),
}


@dataclass(frozen=True, kw_only=True)
class ScoredRuns:
    """What every table of trained and scored encoders is made of."""

    corpus: Annotated[
        Path, Meta(description="corpus directory; it gets the tables of vectors")
    ]
    out: Annotated[Path, Meta(description="where runs and results go")]
    suite: Annotated[
        Path,
        Meta(
            description="plan of the probes",
            extra={"option": "--suite", "metavar": "SUITE.toml"},
        ),
    ]
    data: Annotated[
        Path | None, Meta(description="what paths of the suite are relative to")
    ] = None
    quick: Annotated[bool, Meta(description="run the quick suite")] = False
    max_time: Annotated[
        str | None,
        Meta(
            description="of each training, e.g. 15m, in place of a number of updates",
            extra={"metavar": "TIME"},
        ),
    ] = None
    set: Annotated[
        tuple[str, ...],
        Meta(
            description="a setting of every training",
            extra={"repeat": True, "metavar": "SECTION.KEY=VALUE"},
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class Options(ScoredRuns):
    """What the tables of the paper are made of."""

    vectors: Annotated[
        str,
        Meta(
            description="fastText vectors",
            extra={"option": "--vectors", "metavar": "FILE"},
        ),
    ]
    cnn: Annotated[
        Path | None,
        Meta(
            description="trained ELMo whose character CNN is borrowed (default: the "
            "one of the row elmo)"
        ),
    ] = None
    rows: Annotated[
        tuple[Annotated[str, Meta(pattern=f"^({'|'.join(SYSTEMS)})$")], ...],
        Meta(description="which rows", extra={"metavar": "NAME"}),
    ] = tuple(SYSTEMS)

    def report(self, name: str) -> Path:
        """The file that a finished suite leaves."""
        return self.out / "probes" / name / "suite.json"


def make_table(
    corpus: Path, name: str, origin: Path | str, *, transform: str = "none"
) -> None:
    """Make a table of vectors, unless the corpus has it.

    Raises:
        InputError: the corpus has a table of this name of other vectors.
    """
    if not (corpus / f"vectors/{name}.json").exists():
        table = {"corpus": corpus, "origin": origin, "name": name}
        run_job("data_scripts.build_vectors", table | {"transform": transform})
        return
    made = VectorTable(Corpus(corpus), name).source
    asked = (open_word_vectors(origin).fingerprint, transform)
    if (made.fingerprint, made.post_processing) != asked:
        raise InputError(
            f"the table {name} of {corpus} is of {made.origin}, "
            f"{made.post_processing}: give a corpus without it, or remove it, to make "
            f"one of {origin}, {transform}"
        )


def prepare(options: Options) -> None:
    """Make the tables and the corpus of subwords that the rows need; `cnn` comes
    when there is an ELMo to borrow from.
    """
    needed: set[str] = set()
    for name in options.rows:
        needed.update(SYSTEMS[name].needs)
    for name in ("input", "target"):
        make_table(options.corpus, name, options.vectors)
    if "random" in needed:
        make_table(options.corpus, "random", "random:1:300")
    if "one_billion" in needed:
        # Vectors of the corpus itself, as the paper calls them.
        own = options.out / "vectors.bin"
        if not own.exists():
            run_job(
                "data_scripts.train_fasttext", {"corpus": options.corpus, "output": own}
            )
        make_table(options.corpus, "one_billion", own)
    subwords = options.out / "subwords"
    if OF_SUBWORDS in options.rows and not (subwords / "corpus.json").exists():
        run_job(
            "data_scripts.build_subwords", {"words": options.corpus, "corpus": subwords}
        )


def make_row(options: Options, name: str) -> None:
    """Train a row, unless its probes are done, and run the suite for it."""
    system = SYSTEMS[name]
    trained = options.out / "runs" / name
    if "cnn" in system.needs:
        lender = options.cnn or options.out / "runs/elmo"
        make_table(options.corpus, "cnn", lender / "model")
    if not options.report(name).exists():
        is_split = system.config == OF_SUBWORDS
        corpus = options.out / "subwords" if is_split else options.corpus
        sets = [f"data.corpus={corpus}", *system.sets]
        train(options, CONFIGS / f"twins/small_{system.config}.toml", trained, sets)
    run_suite(options, name, options.vectors, trained)


def train(
    options: ScoredRuns, config: Path, trained: Path, sets: Iterable[str]
) -> None:
    """Train an encoder with some settings, or go on with it."""
    run_job(
        "pretrain",
        {
            "config": config,
            "run": trained,
            "max_time": options.max_time,
            "set": [f"evaluation.every_updates={ONCE}", *sets, *options.set],
            "resume": (trained / "checkpoints").exists(),
        },
    )


def run_suite(
    options: ScoredRuns, name: str, vectors: Path | str, model: Path | None
) -> None:
    """Run the suite for an encoder, or for word vectors alone."""
    how = {
        "inputs": "vectors,both" if model else "vectors",
        "corpus": [options.corpus],
        "vectors": [vectors],
    }
    command = {
        "suite": options.suite,
        "model": model,
        "data": options.data,
        "quick": options.quick,
        "out": options.out / "probes" / name,
        "options": how,
    }
    run_job("downstream suite", command)


def row_of(options: Options, name: str) -> list[str]:
    """The cells of a row: million words, accuracies and perplexity held out, where they
    are of words, and the gain of every probe.
    """
    trained = options.out / "runs" / name
    record = read_model_directory(trained, output_layers=False).training
    cells = [name, f"{(training_words(record) or 0) / 1e6:.2f}"]
    metrics = record.get("held_out", {}) if name != OF_SUBWORDS else {}
    for key, form in METRICS.items():
        cells.append(f"{metrics[key]:{form}}" if key in metrics else "")
    for each in json.loads(options.report(name).read_text())["rows"]:
        both = each["scores"]["both"]["mean"]
        low, high = each["gains"]["both"]["interval"]
        cells.append(f"{both:.2f} [{low:+.2f}, {high:+.2f}]")
    return cells


def make_tables(options: Options) -> None:
    """Make the rows that are asked for, and print their table."""
    prepare(options)
    run_suite(options, "word_vectors", options.vectors, None)
    for name in options.rows:
        make_row(options, name)
    heading = ["", "M words", "acc@1", "acc@10", "perplexity"]
    alone = ["vectors alone", "", "", "", ""]
    for each in json.loads(options.report(options.rows[0]).read_text())["rows"]:
        heading.append(each["dataset"])
        alone.append(f"{each['scores']['vectors']['mean']:.2f}")
    rows = [heading, alone]
    rows += [row_of(options, name) for name in options.rows]
    print(tabulate(rows, headers="firstrow", stralign="right", disable_numparse=True))
    print(
        "probes: word vectors with features, and the 95 % interval of their gain over "
        "word vectors alone"
    )


if __name__ == "__main__":
    sys.exit(
        run_main(
            Options,
            make_tables,
            None,
            prog="python -m experiments.paper_tables",
            description="Make Tables 2 and 3 of the paper in miniature.",
        )
    )
