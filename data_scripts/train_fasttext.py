"""Training of fastText word vectors on the training shards of a corpus.

fastText gives random values to the first `threads / 10` of its rows only, and leaves
the others as it finds the memory: zeros or, in a small model, leftovers that make it
diverge or differ from run to run. Here they are always zeros, so a string made of
subwords that training never saw has the zero vector.
"""

import contextlib
import ctypes
import math
import os
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from data_scripts.parts.shards import words_of
from data_scripts.parts.workers import Workers, parallel_map
from data_scripts.write_text import sentences
from elmoc.command_line import run_main
from elmoc.corpus import Corpus
from elmoc.errors import InputError, human_bytes, is_quiet, say
from elmoc.files.text import open_text
from elmoc.files.writing import atomic_path, locked, temporary_path
from elmoc.process import available_cores
from elmoc.word_vectors.fasttext import FastTextVectors

# A parameter of mallopt(3), as glibc's malloc.h numbers it: new memory is filled with
# the complement of a byte.
_M_PERTURB = -6


def _size(description: str) -> Meta:
    """The declaration of an option that `sizes_for` sets by default."""
    return Meta(ge=1, description=description, extra={"metavar": "N"})


@dataclass(frozen=True, kw_only=True)
class FastTextOptions:
    """How fastText is trained; sizes that are not given suit the text (`sizes_for`)."""

    corpus: Annotated[
        Path, Meta(description="corpus directory", extra={"metavar": "CORPUS"})
    ]
    output: Annotated[
        Path, Meta(description="fastText model to make", extra={"metavar": "OUT.bin"})
    ]
    dim: Annotated[int, _size("width of the vectors (300)")] | None = None
    epochs: (
        Annotated[int, _size("passes over the corpus (5 up to 10M words, 1 from 50M)")]
        | None
    ) = None
    buckets: (
        Annotated[
            int,
            _size(
                "rows for hashed subwords (100,000 for 1M words, growing as the root)"
            ),
        ]
        | None
    ) = None
    minn: Annotated[int, _size("characters of the shortest subwords (3)")] | None = None
    maxn: Annotated[int, _size("characters of the longest subwords (6)")] | None = None
    min_count: (
        Annotated[
            int,
            _size(
                "rarer words have only subwords, no row of their own (2 up to 2M "
                "words, then 5)"
            ),
        ]
        | None
    ) = None
    seed: Annotated[
        int, Meta(description="of the random start", extra={"metavar": "N"})
    ] = 0
    workers: Workers = field(default_factory=available_cores)


def sizes_for(words: int) -> dict[str, int]:
    """What suits a text of this number of words, by fastText's names."""
    # 5 passes up to 10M words, 2 at 25M, 1 from 50M on: ten to fifteen minutes of two
    # cores for up to 50M words.
    epochs = min(5, max(1, math.ceil(50e6 / max(1, words))))
    # 50,000 to two million rows of subwords, 100,000 at 1M words and 500,000 at 25M:
    # two million are 2.4 GB.
    buckets = round(100 * math.sqrt(words / 1e6)) * 1000
    return {
        "dim": 300,
        "minn": 3,
        "maxn": 6,
        "epoch": epochs,
        "bucket": min(2_000_000, max(50_000, buckets)),
        # fastText's usual 5 leaves too few words of little text a row of their own.
        "minCount": 2 if words <= 2_000_000 else 5,
    }


def train_fasttext(options: FastTextOptions) -> None:
    """Train on the training shards of a corpus of words.

    The text is written beside the output for fastText to read, and removed afterwards.

    Raises:
        InputError: the output exists, is being written or is not a `.bin`, no word is
            frequent enough, or the vectors are not finite.
    """
    output = options.output
    if output.suffix != ".bin":
        raise InputError(f"{output}: the name of a fastText model ends in .bin")
    corpus = Corpus(options.corpus)
    corpus.require_words()
    words = words_of(corpus.train)
    given = {
        "dim": options.dim,
        "minn": options.minn,
        "maxn": options.maxn,
        "epoch": options.epochs,
        "bucket": options.buckets,
        "minCount": options.min_count,
    }
    sizes = sizes_for(words) | {
        name: size for name, size in given.items() if size is not None
    }
    # `<s>` and `</s>` are two of them; fastText would train on these alone.
    if (corpus.counts >= sizes["minCount"]).sum() <= 2:
        raise InputError(
            f"no word of {corpus.path} occurs {sizes['minCount']} times: give a "
            "smaller --min-count"
        )
    say(f"{words:,} words; {', '.join(f'{name} {sizes[name]:,}' for name in sizes)}")
    with (
        locked(output, new=True),
        temporary_path(output, "text") as text,
        atomic_path(output, checksum=True) as model,
    ):
        with open_text(text) as file:
            for line, _ in sentences(corpus, corpus.train):
                file.write(line.removeprefix("\n"))
        # In a process of its own, in which the library can crash or be interrupted
        # alone. Of the two workers one gets no item.
        list(parallel_map(partial(_train, model, options, sizes), [text], workers=2))
        # fastText does not notice that it cannot write: a model that is not whole
        # fails here.
        FastTextVectors(model)
    say(f"{output}: {human_bytes(output.stat().st_size)}")


def _train(
    model: Path, options: FastTextOptions, sizes: dict[str, int], text: Path
) -> None:
    """Train in this process; fastText shows how far it is, in a file at its end."""
    import fasttext

    # Without glibc there is no mallopt.
    with contextlib.suppress(AttributeError, OSError):
        # The complement of 0xFF: new memory is zeros.
        ctypes.CDLL(None).mallopt(_M_PERTURB, 0xFF)
    # `train_unsupervised` takes every argument but the seed, and reads it from here.
    fasttext.FastText.unsupervised_default["seed"] = options.seed
    trained = fasttext.train_unsupervised(
        os.fsencode(text),
        model="skipgram",
        verbose=0 if is_quiet() else 1 + sys.stderr.isatty(),
        thread=options.workers,
        **sizes,
    )
    trained.save_model(os.fsencode(model))


main = partial(
    run_main,
    FastTextOptions,
    train_fasttext,
    prog="python -m data_scripts.train_fasttext",
    description="Train fastText skip-gram vectors with subwords on the training "
    "shards of a corpus. With several processes its threads race, so that two runs "
    "differ slightly; --processes 1 with the same --seed gives the same vectors "
    "again.",
)

if __name__ == "__main__":
    sys.exit(main())
