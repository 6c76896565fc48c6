"""Training of fastText word vectors on the training shards of a corpus.

fastText gives random values to the first `threads / 10` of its rows only, and leaves
the others as it finds the memory: zeros or, in a small model, leftovers that make it
diverge or differ from run to run. Here they are always zeros, so a string made of
subwords that training never saw has the zero vector.
"""

import argparse
import contextlib
import ctypes
import math
import os
import re
import select
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from data_scripts.parts.workers import add_workers, parallel_map, positive
from data_scripts.write_text import sentences
from elmoc.corpus import Corpus
from elmoc.errors import InputError, duration, human_bytes, run_command
from elmoc.files.text import open_text
from elmoc.files.writing import atomic_path, locked, refuse_existing, temporary_path
from elmoc.word_vectors.fasttext import FastTextVectors

# seconds between two lines of progress in a file, and characters of fastText's own
# lines
_LOG_SECONDS = 30.0
_LONGEST_LINE = 300


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.train_fasttext",
        description="Train fastText skip-gram vectors with subwords on the training shards of a corpus. With several "
        "workers fastText's threads race, so that two runs differ slightly; --workers 1 with the same --seed gives the "
        "same vectors again.",
    )
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="corpus directory")
    parser.add_argument(
        "output", type=Path, metavar="OUT.bin", help="fastText model to make"
    )
    for option, name, text in (
        ("--dim", "dim", "width of the vectors (300)"),
        ("--epochs", "epoch", "passes over the corpus (5 up to 10M words, 1 from 50M)"),
        (
            "--buckets",
            "bucket",
            "rows for hashed subwords (100,000 for 1M words, growing as the root)",
        ),
        ("--minn", "minn", "characters of the shortest subwords (3)"),
        ("--maxn", "maxn", "characters of the longest subwords (6)"),
        (
            "--min-count",
            "minCount",
            "rarer words have only subwords, no row of their own (2 up to 2M words, then 5)",
        ),
    ):
        parser.add_argument(
            option,
            dest=name,
            type=positive,
            default=argparse.SUPPRESS,
            metavar="N",
            help=text,
        )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="of the random start (%(default)s)",
    )
    add_workers(parser)
    options = vars(parser.parse_args(argv))
    return run_command(lambda: train_fasttext(Corpus(options.pop("corpus")), **options))


def sizes_for(words: int) -> dict[str, int]:
    """What suits a text of this number of words, by fastText's names."""
    return {
        "dim": 300,
        "minn": 3,
        "maxn": 6,
        # 5 passes up to 10M words, 2 at 25M, 1 from 50M on: ten to fifteen minutes of
        # two cores for up to 50M words
        "epoch": min(5, max(1, math.ceil(50e6 / max(1, words)))),
        # 50,000 to two million rows of subwords, 100,000 at 1M words and 500,000 at
        # 25M: two million are 2.4 GB
        "bucket": min(
            2_000_000, max(50_000, round(100 * math.sqrt(words / 1e6)) * 1000)
        ),
        # fastText's usual 5 leaves too few words of little text a row of their own
        "minCount": 2 if words <= 2_000_000 else 5,
    }


def train_fasttext(
    corpus: Corpus, output: Path, *, seed: int = 0, workers: int = 1, **sizes: int
) -> None:
    """Train on the training shards of `corpus` and write the model to `output`; `sizes`
    replace what `sizes_for` gives.

    The text is written beside the output for fastText to read, and removed afterwards.
    Raises `InputError` when the output exists, is being written or is not a `.bin`, no
    word is frequent enough, or the vectors are not finite.
    """
    if output.suffix != ".bin":
        raise InputError(f"{output}: the name of a fastText model ends in .bin")
    corpus.require_words()
    words = sum(shard.tokens - 2 * shard.sentences for shard in corpus.train)
    sizes = sizes_for(words) | sizes
    if (
        corpus.counts >= sizes["minCount"]
    ).sum() <= 2:  # `<s>` and `</s>`; fastText would train on these alone
        raise InputError(
            f"no word of {corpus.path} occurs {sizes['minCount']} times: give a smaller --min-count"
        )
    print(
        f"{words:,} words;",
        ", ".join(f"{name} {size:,}" for name, size in sizes.items()),
        flush=True,
    )
    started = time.monotonic()
    with locked(output):
        refuse_existing(output)
        with temporary_path(output, "text") as text, atomic_path(output) as partial:
            with open_text(text) as file:
                shards = [(shard, shard.tokens) for shard in corpus.train]
                file.writelines(
                    line.removeprefix("\n") for line, _ in sentences(corpus, shards)
                )
            # in a process of its own (of two; one gets no item), in which the library
            # can crash or be interrupted alone
            list(
                parallel_map(
                    lambda path: _train(path, partial, seed, thread=workers, **sizes),
                    [text],
                    workers=2,
                )
            )
            # fastText does not notice that it cannot write: a model that is not whole
            # fails here
            FastTextVectors(partial)
    seconds = time.monotonic() - started
    speed = words * sizes["epoch"] / seconds
    print(
        f"{output}: {human_bytes(output.stat().st_size)}, trained in {seconds:.0f} s ({speed:,.0f} words/s)"
    )


def _train(text: Path, model: Path, seed: int, **numbers: int) -> None:
    """Train in this process; what fastText says of its progress on standard error is
    printed by `_print_progress`.
    """
    import fasttext

    with contextlib.suppress(AttributeError, OSError):  # without glibc
        ctypes.CDLL(None).mallopt(
            -6, 0xFF
        )  # M_PERTURB: new memory is filled with the complement, zeros
    # train_unsupervised takes every argument but this one, and reads it from here
    fasttext.FastText.unsupervised_default["seed"] = seed
    reading, writing = os.pipe()
    shown = os.dup(2)
    os.dup2(writing, 2)
    os.close(writing)
    thread = threading.Thread(target=_print_progress, args=(reading, shown))
    thread.start()
    try:
        trained = fasttext.train_unsupervised(
            str(text), model="skipgram", verbose=2, **numbers
        )
    finally:
        os.dup2(shown, 2)
        thread.join()
    if not all(
        np.isfinite(trained.get_word_vector(word)).all() for word in trained.get_words()
    ):
        raise InputError("the vectors diverged: they are not finite")
    trained.save_model(str(model))


def _print_progress(reading: int, shown: int) -> None:
    """Print how far fastText is to the file `shown`: over the same line of a terminal,
    else a line a half minute.

    With one thread fastText says nothing until its end: then it is how long it has
    trained.
    """
    every, end = (1.0, "\r") if os.isatty(shown) else (_LOG_SECONDS, "\n")
    said = ""
    began = time.monotonic()
    before = began
    with open(shown, "w", closefd=False) as output:
        while True:
            if select.select([reading], [], [], every)[0]:
                if not (part := os.read(reading, 1 << 12)):
                    break
                said = (said + part.decode(errors="replace"))[-_LONGEST_LINE:]
            if (now := time.monotonic()) - before >= every:
                lines = re.findall(r"Progress:\s*([\d.]+)%", said)
                share = float(lines[-1]) / 100 if lines else 0
                said_so_far = f"{duration(now - began)} so far"
                done = (
                    f"{share:.1%} done, {duration((now - began) * (1 / share - 1))} left, "
                    if share
                    else ""
                )
                print(
                    f"fastText: {done}{said_so_far}", end=end, file=output, flush=True
                )
                before = now
    os.close(reading)


if __name__ == "__main__":
    sys.exit(main())
