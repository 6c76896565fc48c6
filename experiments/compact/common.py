"""What the tables of compact word vectors share: their options, and rows that are made
by commands of the project.
"""

import itertools
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from elmoc.command_line import run_main
from elmoc.corpus import UNKNOWN
from elmoc.files.text import read_lines
from elmoc.settings import Meta
from elmoc.word_vectors.compact import CompactVectors
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.stored import LexiconVectors

# Shu and Nakayama (2018), Section 5.2: 75,102 words of IMDB that GloVe has.
WORDS = 75_000
# Their Section 5.1: 200,000 steps at 1e-4.
STEPS = 10_000
RATE = 1e-3
PAIRS = ("EN-SIMLEX-999", "EN-WS-353-ALL", "EN-RG-65", "EN-VERB-143", "EN-MEN-TR-3k")


@dataclass(frozen=True)
class Options:
    """Where a table finds its data."""

    out: Annotated[
        Path,
        Meta(description="folder of the rows; one that is there is not made again"),
    ]
    vectors: Annotated[
        str,
        Meta(
            description="fastText vectors",
            extra={"option": "--vectors", "metavar": "FILE"},
        ),
    ]
    words: Annotated[
        Path,
        Meta(
            description="lexicon with a word a line, most frequent first",
            extra={"option": "--words", "metavar": "LEXICON"},
        ),
    ]
    data: Annotated[
        Path,
        Meta(
            description="folder with imdb/, lm/, sst5/ and wordsim/",
            extra={"option": "--data", "metavar": "DIR"},
        ),
    ]


def run_table(print_table: Callable[[Options], None], description: str) -> None:
    """The `main` of a table."""

    def run(options: Options) -> None:
        options.out.mkdir(parents=True, exist_ok=True)
        print_table(options)

    prog = f"python -m experiments.compact.{Path(sys.argv[0]).stem}"
    sys.exit(run_main(Options, run, None, prog=prog, description=description))


def row(out: Path, name: str, command: Sequence[object]) -> list[str]:
    """The lines that a command of the project prints, kept as OUT/NAME.txt; it is run
    where that is not there.
    """
    file = out / f"{name}.txt"
    if not file.exists():
        # Of a row that was stopped before it was told.
        file.with_suffix(".safetensors").unlink(missing_ok=True)
        line = [sys.executable, "-m", *map(str, command)]
        print("$", shlex.join(line), flush=True)
        done = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True)
        file.write_text(done.stdout)
    return file.read_text().splitlines()


def train(out: Path, name: str, config: Path, sets: Sequence[str]) -> None:
    """A training run in OUT/NAME, which goes on where it was stopped."""
    command: list[object] = ["pretrain", config, out / name]
    for each in sets:
        command += ["--set", each]
    if (out / name / "checkpoints").exists():
        command.append("--resume")
    row(out, f"{name}_run", command)


def lexicon(options: Options) -> tuple[list[str], np.ndarray]:
    """The first words and their vectors, float32 [n, E]."""
    first = itertools.islice(read_lines(options.words), WORDS)
    # Its vector would stand for every word that some of the rows do not know.
    words = [word for word in first if word != UNKNOWN]
    return words, open_word_vectors(options.vectors, only=words).lookup(words)


def bytes_a_word(file: Path, words: int) -> float:
    """The size of a file of vectors: of pruned ones as a sparse matrix, of whole ones
    as float32, of others without hashes.
    """
    sparse = file.with_suffix(".npz")
    if sparse.exists():
        return sparse.stat().st_size / words
    vectors = open_word_vectors(file)
    if isinstance(vectors, LexiconVectors):
        return 4.0 * vectors.size
    if isinstance(vectors, CompactVectors):
        # A hash takes eight bytes.
        return file.stat().st_size / len(vectors.hashes) - 8
    return file.stat().st_size / words


def learn_codes(options: Options, cell: str) -> list[str]:
    """Learn codes `MxK` of the first words; the lines that the command prints."""
    books, entries = cell.split("x")
    made = options.out / f"codes{cell}.safetensors"
    command = ["experiments.compact.learners", "codes", options.vectors, made]
    command += ["--words", options.words, "--most", WORDS, "--codebooks", books]
    command += ["--entries", entries, "--steps", STEPS, "--learning-rate", RATE]
    return row(options.out, f"codes{cell}", command)


def similarity(
    options: Options, name: str, vectors: Path | str, shown: Sequence[str] = PAIRS
) -> str:
    """Spearman's ρ × 100 of the cosines of words and people's judgements, for each file
    of pairs that is shown.
    """
    command = ["experiments.similarity", vectors]
    command += [options.data / f"wordsim/{pairs}.txt" for pairs in PAIRS]
    found = []
    for line in row(options.out, f"similarity_{name}", command):
        fields = line.split()
        if len(fields) > 1 and fields[1] in shown:
            found.append(f"{fields[1]} {fields[-2]}")
    return " ".join(found)


def accuracy(out: Path, name: str) -> float:
    """The accuracy that a probe on word vectors alone has printed at its end."""
    printed = (out / f"{name}.txt").read_text()
    return float(re.findall(r"vectors +([\d.]+)", printed)[-1])
