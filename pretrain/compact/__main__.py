"""Learn compact word vectors from a table of them.

python -m pretrain.compact codes TABLE OUT.safetensors [--words FILE] --codebooks M
--entries K python -m pretrain.compact alone TABLE OUT.safetensors [--words FILE]
--filter real --inner-size N
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from elmoc.command_line import add_options, chosen
from elmoc.errors import InputError, human_bytes, run_command
from elmoc.files.text import read_lines
from elmoc.files.writing import atomic_path, locked, refuse_existing
from elmoc.word_vectors.compact import CompactVectors
from elmoc.word_vectors.opening import open_word_vectors
from pretrain.compact.alone import AloneSettings, learn_alone
from pretrain.compact.codes import CodeSettings, learn_codes
from pretrain.compact.learning import reconstruction


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pretrain.compact", description="Learn compact word vectors."
    )
    commands = parser.add_subparsers(required=True)
    for name, defaults, learn in (
        ("codes", CodeSettings(), learn_codes),
        ("alone", AloneSettings(), learn_alone),
    ):
        command = commands.add_parser(
            name, help=(defaults.__doc__ or "").partition(";")[0]
        )
        command.set_defaults(defaults=defaults, learn=learn)
        command.add_argument(
            "table",
            metavar="TABLE",
            help="CORPUS/vectors/NAME.npy, or any word vectors with --words",
        )
        command.add_argument(
            "out", type=Path, metavar="OUT", help="the file to make, a .safetensors"
        )
        command.add_argument(
            "--words",
            type=Path,
            metavar="FILE",
            help="words, one a line, most frequent first",
        )
        command.add_argument(
            "--most",
            type=int,
            metavar="N",
            help="the first N words alone (default: all)",
        )
        add_options(command, type(defaults), defaults=defaults)
    return run_command(lambda: make(parser.parse_args(argv)))


def make(options: argparse.Namespace) -> None:
    """Learn, write and report what the parsed command line asks for."""
    out = options.out
    settings = chosen(options, options.defaults)
    if out.suffix != ".safetensors":
        raise InputError(
            f"{out} must be named .safetensors, by which word vectors are opened"
        )
    with locked(out):
        refuse_existing(out)
        words, rows = read_table(options.table, options.words, options.most)
        learned, told = options.learn(words, rows, settings)
        vectors = CompactVectors.of_words(words, learned)
        with atomic_path(out) as partial:
            vectors.write(partial)
    print(
        f"{out}: {len(words):,} words, {human_bytes(out.stat().st_size)} (as float32 {human_bytes(rows.nbytes)})"
    )
    print(reconstruction(words, rows, vectors))
    print(
        f"words with the hash of another: {len(words) - len(vectors.hashes)}",
        *told,
        sep="\n",
    )


def read_table(
    origin: str, words: Path | None, most: int | None
) -> tuple[list[str], np.ndarray]:
    """Words and their vectors, float32 [n, E]; words without a vector, which are zeros,
    are left out.
    """
    path = Path(origin)
    if path.suffix == ".npy" and path.parent.name == "vectors":
        from elmoc.corpus import Corpus
        from elmoc.word_vectors.table import VectorTable

        corpus = Corpus(path.parent.parent)
        names = corpus.lexicon[:most]
        rows = VectorTable(corpus, path.stem).rows[: len(names)].astype(np.float32)
    elif words is None:
        raise InputError(
            f"{origin} does not list its words: name a file of words with --words"
        )
    else:
        names = list(dict.fromkeys(word for word in read_lines(words) if word))[:most]
        rows = open_word_vectors(origin, only=names).lookup(names)
    known = np.flatnonzero(rows.any(axis=1))
    if not len(known):
        raise InputError(f"{origin} has no vector for any of the {len(names):,} words")
    if missing := len(names) - len(known):
        print(f"note: {missing:,} words without a vector are left out", file=sys.stderr)
    return [names[row] for row in known.tolist()], rows[known]


if __name__ == "__main__":
    sys.exit(main())
