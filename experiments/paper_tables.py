"""Tables 2 and 3 of the paper in miniature: its systems at small sizes, trained equally
long, and scored by probes.

    python -m experiments.paper_tables CORPUS OUT --vectors FILE --suite SUITE.toml
    --max-time 15m [--rows NAME…]

The twins of the paper's configs (pretrain/configs/twins) are trained on one corpus, one
after the other; a suite of probes is run for each (Li et al. 2019, Sections 4 and 5.1).
What is finished is not made again.
"""

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pretrain import CONFIGS
from pretrain.run.directory import read_metrics

ONCE = 10**9  # updates between two evaluations: there is one at the end


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
    "elmo_sub": System("elmo_sub"),
    "elmo_c": System("elmo_c"),
    "elmo_c_oneb": System("elmo_c_oneb", needs=("one_billion",)),
    "elmo_c_rnd": System("elmo_c_rnd", needs=("random",)),
    "elmo_c_cnn": System("elmo_c_cnn", needs=("cnn",)),
    "elmo_c_cnn_cc": System("elmo_c_cnn_cc", needs=("cnn",)),
    "elmo_c_cc_cnn": System("elmo_c_cc_cnn", needs=("cnn",)),
    # random input vectors, which the paper found brittle, and the contrastive output
    # layer
    "elmo_c_rnd_input": System("elmo_c", ("data.input_vectors=random",), ("random",)),
    "contrastive": System("elmo_c", ("output_layer.kind=contrastive",)),
}


def run(*words: object) -> None:
    """Run a command of the project as it prints itself; ends here where it fails."""
    line = [sys.executable, "-m", *map(str, words)]
    print("$ python", *line[1:], flush=True)
    subprocess.run(line, check=True)


def make_table(corpus: Path, name: str, origin: object) -> None:
    """Make a table of vectors, as they are, unless the corpus has it."""
    if not (corpus / f"vectors/{name}.json").exists():
        run("data_scripts.build_vectors", corpus, origin, "--name", name)


def prepare(options: argparse.Namespace) -> None:
    """Make the tables and the corpus of subwords that the rows need; `cnn` comes from
    the row `elmo`.
    """
    needed = {table for name in options.rows for table in SYSTEMS[name].needs}
    for name in ("input", "target"):
        make_table(options.corpus, name, options.vectors)
    if "random" in needed:
        make_table(options.corpus, "random", "random:1:300")
    if "one_billion" in needed:  # vectors of the corpus itself, as the paper calls them
        own = options.out / "vectors.bin"
        if not own.exists():
            run("data_scripts.train_fasttext", options.corpus, own)
        make_table(options.corpus, "one_billion", own)
    if (
        "elmo_sub" in options.rows
        and not (options.out / "subwords/corpus.json").exists()
    ):
        run("data_scripts.build_subwords", options.corpus, options.out / "subwords")


def make_row(options: argparse.Namespace, name: str) -> None:
    """Train a row, unless its probes are done, and run the suite for it."""
    system = SYSTEMS[name]
    trained = options.out / "runs" / name
    if "cnn" in system.needs:
        make_table(options.corpus, "cnn", options.out / "runs/elmo/model")
    config = CONFIGS / f"twins/small_{system.config}.toml"
    corpus = options.out / "subwords" if system.config == "elmo_sub" else options.corpus
    sets = [
        f"data.corpus={corpus}",
        f"evaluation.every_updates={ONCE}",
        *system.sets,
        *options.set,
    ]
    more = [word for each in sets for word in ("--set", each)]
    if not (options.out / "probes" / name / "suite.json").exists():
        resume = ["--resume"] if (trained / "checkpoints").exists() else []
        run("pretrain", config, trained, *more, "--max-time", options.max_time, *resume)
    run_suite(options, name, "--model", trained)


def run_suite(options: argparse.Namespace, name: str, *what: object) -> None:
    """Run the suite for an encoder, or for word vectors alone."""
    more = ["--quick"] if options.quick else []
    more += ["--data", options.data] if options.data else []
    line = ["--vectors", options.vectors, "--out", options.out / "probes" / name, *more]
    run("downstream", "suite", options.suite, *what, "--corpus", options.corpus, *line)


def row_of(options: argparse.Namespace, name: str) -> list[str]:
    """The cells of a row: million words, accuracies and perplexity held out, and the
    gain of every probe.
    """
    metrics = read_metrics(options.out / "runs" / name, "evaluation")[-1]
    report = json.loads((options.out / "probes" / name / "suite.json").read_text())
    cells = [name, f"{metrics['words'] / 1e6:.2f}"]
    for key, form in (
        ("accuracy_at_1", ".3f"),
        ("accuracy_at_10", ".3f"),
        ("perplexity", ".1f"),
    ):
        cells.append(f"{metrics[key]:{form}}" if key in metrics else "")
    for each in report["rows"]:
        both = each["scores"]["both"]["mean"]
        (low, high) = each["gains"]["both"]["interval"]
        cells.append(f"{both:.2f} [{low:+.2f}, {high:+.2f}]")
    return cells


def main() -> None:
    """Make the rows that are asked for, and print the table of all that are there."""
    parser = argparse.ArgumentParser(
        description="Make Tables 2 and 3 of the paper in miniature."
    )
    parser.add_argument(
        "corpus",
        type=Path,
        metavar="CORPUS",
        help="corpus directory; it gets the tables of vectors",
    )
    parser.add_argument(
        "out", type=Path, metavar="OUT", help="where runs and results go"
    )
    parser.add_argument(
        "--vectors", required=True, metavar="FILE", help="fastText vectors"
    )
    parser.add_argument("--suite", required=True, type=Path, metavar="SUITE.toml")
    parser.add_argument("--quick", action="store_true", help="run the quick suite")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="what paths of the suite are relative to",
    )
    parser.add_argument(
        "--max-time", required=True, metavar="TIME", help="of each training, e.g. 15m"
    )
    parser.add_argument(
        "--rows", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), metavar="NAME"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="of every training",
    )
    options = parser.parse_args()
    prepare(options)
    run_suite(options, "word_vectors", "--inputs", "vectors")
    for name in options.rows:
        make_row(options, name)
    done = [
        name
        for name in SYSTEMS
        if (options.out / "probes" / name / "suite.json").exists()
    ]
    report = json.loads((options.out / "probes" / done[0] / "suite.json").read_text())
    heading = [
        "",
        "M words",
        "acc@1",
        "acc@10",
        "perplexity",
        *(each["dataset"] for each in report["rows"]),
    ]
    alone = [
        "vectors alone",
        *[""] * 4,
        *(f"{each['scores']['vectors']['mean']:.2f}" for each in report["rows"]),
    ]
    for cells in (heading, alone, *(row_of(options, name) for name in done)):
        print(
            f"{cells[0]:18}",
            *(f"{cell:>10}" for cell in cells[1:5]),
            *(f"{cell:>24}" for cell in cells[5:]),
        )
    print(
        "probes: word vectors with features, and the 95 % interval of their gain over word vectors alone"
    )


if __name__ == "__main__":
    main()
