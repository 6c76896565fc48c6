"""Learn compact word vectors from a table of them.

python -m pretrain.compact codes TABLE OUT.safetensors [--words FILE] [--codebooks M]
python -m pretrain.compact alone TABLE OUT.safetensors [--words FILE] [--filter real]
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from elmoc.command_line import run_main
from elmoc.errors import InputError, human_bytes, say
from elmoc.files.writing import atomic_path, locked, refuse_existing
from pretrain.compact.options import CompactOptions

if TYPE_CHECKING:
    import numpy as np


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, and return the exit status."""
    return run_main(
        CompactOptions,
        learn_and_write,
        argv,
        prog="python -m pretrain.compact",
        description="Learn compact word vectors.",
    )


def learn_and_write(options: CompactOptions) -> None:
    """Learn, write and report what the options ask for."""
    from elmoc.word_vectors.compact import CompactVectors
    from pretrain.compact.alone import learn_alone
    from pretrain.compact.codes import learn_codes
    from pretrain.compact.learning import reconstruction

    out = options.out
    if out.suffix != ".safetensors":
        raise InputError(
            f"{out} must be named .safetensors, by which word vectors are opened"
        )
    learn = learn_codes if options.kind == "codes" else learn_alone
    with locked(out):
        refuse_existing(out)
        words, rows = read_table(options)
        learned, told = learn(words, rows, options)
        vectors = CompactVectors.of_words(words, learned)
        with atomic_path(out) as partial:
            vectors.write(partial)
    size = human_bytes(out.stat().st_size)
    say(f"{out}: {len(words):,} words, {size} (as float32 {human_bytes(rows.nbytes)})")
    say(reconstruction(words, rows, vectors))
    say(f"words with the hash of another: {len(words) - len(vectors.hashes)}")
    say(told)


def read_table(options: CompactOptions) -> "tuple[list[str], np.ndarray]":
    """Words and their vectors, float32 [n, E]; words without a vector, which are zeros,
    are left out.
    """
    import numpy as np

    from elmoc.corpus import Corpus
    from elmoc.files.text import read_lines
    from elmoc.word_vectors.opening import open_word_vectors
    from elmoc.word_vectors.table import VectorTable

    path = Path(options.table)
    most = options.most or None
    if path.suffix == ".npy" and path.parent.name == "vectors":
        corpus = Corpus(path.parent.parent)
        names = corpus.lexicon[:most]
        rows = VectorTable(corpus, path.stem).rows[: len(names)].astype(np.float32)
    elif options.words is None:
        raise InputError(
            f"{path} does not list its words: name a file of words with --words"
        )
    else:
        # each word once, in the order of the file
        distinct = dict.fromkeys(word for word in read_lines(options.words) if word)
        names = list(distinct)[:most]
        rows = open_word_vectors(options.table, only=names).lookup(names)
    known = np.flatnonzero(rows.any(axis=1))
    if not len(known):
        raise InputError(f"{path} has no vector for any of the {len(names):,} words")
    missing = len(names) - len(known)
    if missing:
        say(f"note: {missing:,} words without a vector are left out", file=sys.stderr)
    return [names[row] for row in known.tolist()], rows[known]


if __name__ == "__main__":
    sys.exit(main())
