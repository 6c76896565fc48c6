"""Learn compact word vectors from a table of them.

python -m pretrain.compact codes TABLE OUT.safetensors [--words FILE] --codebooks M --entries K
python -m pretrain.compact alone TABLE OUT.safetensors [--words FILE] --filter real --inner-size N
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from elmoc.errors import InputError, run_command
from elmoc.files import atomic_path, human_bytes, locked, read_lines, refuse_existing
from elmoc.settings import check_settings
from elmoc.word_vectors.coded_rows import CodedRows, FilteredRows, unpack_codes
from elmoc.word_vectors.compact import CompactVectors
from elmoc.word_vectors.opening import open_word_vectors
from pretrain.compact.alone import AloneSettings, learn_alone
from pretrain.compact.codes import CodeSettings, learn_codes
from pretrain.compact.report import balance, reconstruction, shared_codes

KINDS: dict[str, type[CodeSettings] | type[AloneSettings]] = {"codes": CodeSettings, "alone": AloneSettings}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pretrain.compact", description="Learn compact word vectors.")
    commands = parser.add_subparsers(dest="kind", required=True)
    for name, kind in KINDS.items():
        command = commands.add_parser(name, help=(kind.__doc__ or "").partition(";")[0])
        command.add_argument("table", metavar="TABLE", help="CORPUS/vectors/NAME.npy, or any word vectors with --words")
        command.add_argument("out", type=Path, metavar="OUT", help="the file to make, a .safetensors")
        command.add_argument("--words", type=Path, metavar="FILE", help="words, one a line, most frequent first")
        command.add_argument("--most", type=int, metavar="N", help="the first N words alone (default: all)")
        for each in fields(kind):
            text = f"{each.metadata['help']} (default: {each.default})"
            options: dict[str, Any] = {"type": type(each.default), "choices": each.metadata["choices"]}
            if isinstance(each.default, bool):
                options = {"action": "store_true"}
            command.add_argument(option_name(each.name), default=each.default, help=text, **options)
    return run_command(lambda: make(parser.parse_args(argv)))


def option_name(name: str) -> str:
    """The option of a setting, as it is written in a command."""
    return f"--{name.replace('_', '-')}"


def make(options: argparse.Namespace) -> None:
    """Learn, write and report what the parsed command line asks for."""
    kind, out = KINDS[options.kind], options.out
    settings = kind(**{each.name: getattr(options, each.name) for each in fields(kind)})
    check_settings(settings, option_name)
    if out.suffix != ".safetensors":
        raise InputError(f"{out} must be named .safetensors, by which word vectors are opened")
    with locked(out):
        refuse_existing(out)
        words, rows = read_table(options.table, options.words, options.most)
        learned: CodedRows | FilteredRows
        if isinstance(settings, CodeSettings):
            learned = learn_codes(rows, settings)
        else:
            learned = learn_alone(words, rows, settings)
        vectors = CompactVectors.of_words(words, learned)
        with atomic_path(out) as partial:
            vectors.write(partial)
    print(f"{out}: {len(words):,} words, {human_bytes(out.stat().st_size)} (as float32 {human_bytes(rows.nbytes)})")
    print(reconstruction(words, rows, vectors))
    print(f"words with the hash of another: {len(words) - len(vectors.hashes)}")
    if isinstance(learned, CodedRows):
        number, entries, _ = learned.codebooks.shape
        codes = unpack_codes(learned.codes, number, entries)
        print(balance(codes, entries), shared_codes(rows, codes), sep="\n")
    else:
        chosen = learned.filters.numbers(learned.hashes)  # [n, M]
        print(f"words with the filter of another: {len(words) - len(np.unique(chosen, axis=0))}")


def read_table(origin: str, words: Path | None, most: int | None) -> tuple[list[str], np.ndarray]:
    """Words and their vectors, float32 [n, E]; words without a vector, which are zeros, are left out."""
    path = Path(origin)
    if path.suffix == ".npy" and path.parent.name == "vectors":
        from elmoc.corpus import Corpus
        from elmoc.word_vectors.table import VectorTable

        corpus = Corpus(path.parent.parent)
        names = corpus.lexicon[:most]
        rows = VectorTable(corpus, path.stem).rows[: len(names)].astype(np.float32)
    elif words is None:
        raise InputError(f"{origin} does not list its words: name a file of words with --words")
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
