"""Training of fastText word vectors on the training shards of a corpus.

Skip-gram with subwords of 3 to 6 characters. Buckets (rows for the hashed subwords) and epochs follow the size of the
corpus: two million buckets make a file of 2.4 GB whatever the text.

fastText gives random values to the first `threads / 10` of its rows only, and leaves the others as it finds the memory:
zeros or, in a small model, leftovers that make it diverge or differ from run to run. Here they are always zeros, so a
string made of subwords that training never saw has the zero vector.
"""

import argparse
import contextlib
import ctypes
import errno
import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from data_scripts.parts.options import Options
from data_scripts.parts.workers import default_workers, how_it_ended
from elmoc.corpus import Corpus
from elmoc.errors import InputError, run_command
from elmoc.files.locks import locked
from elmoc.files.writing import atomic_path, human_bytes, refuse_existing, require_space, temporary_path
from elmoc.process import end_with_parent
from elmoc.settings import setting
from elmoc.word_vectors.fasttext.file import MAX_SIZE, open_file

_BLOCK_TOKENS = 1 << 20
_M_PERTURB = -6  # of glibc's malloc.h
_SHORTEST_SUBWORD, _LONGEST_SUBWORD = 3, 6
_HEADER_BYTES = 8 + 56 + 28  # magic and version, arguments, sizes of the dictionary
_ENTRY_BYTES = 1 + 8 + 1  # of a word of the dictionary, besides the word: zero byte, count, type
_MATRIX_BYTES = 1 + 16  # a matrix besides its numbers: whether it is quantised, rows and columns
_LITTLE_TEXT = 1_000_000
"""Fewer words give poor vectors."""
_LARGEST = 2**31 - 1  # fastText's numbers are C's int


@dataclass(frozen=True, kw_only=True)
class FastTextSettings(Options):
    """What fastText is trained with; `workers` threads."""

    seed: int = setting(least=0, most=_LARGEST)
    dim: int = setting(above=0, most=MAX_SIZE)
    epochs: int = setting(above=0, most=100_000)
    buckets: int = setting(above=0, most=_LARGEST)
    min_count: int = setting(above=0, most=_LARGEST)
    learning_rate: float = setting(0.05, above=0)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.train_fasttext",
        description="Train fastText skip-gram vectors with subwords on the training shards of a corpus. With several "
        "workers fastText's threads race, so that two runs differ slightly; --workers 1 with the same --seed gives the "
        "same vectors again.",
    )
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="corpus directory")
    parser.add_argument("output", type=Path, metavar="OUT.bin", help="fastText model to make")
    parser.add_argument("--dim", type=int, default=300, metavar="E", help="width of the vectors (%(default)s)")
    parser.add_argument("--epochs", type=int, metavar="N", help="passes over the corpus (5 up to 1M words, 1 from 25M)")
    parser.add_argument(
        "--buckets", type=int, metavar="N", help="rows for hashed subwords (100,000 for 1M words, growing as the root)"
    )
    parser.add_argument(
        "--min-count",
        type=int,
        metavar="N",
        help="rarer words have no row of their own, only subwords (2 up to 2M words, then 5)",
    )
    parser.add_argument("--workers", type=int, default=default_workers(), metavar="N", help="threads (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random start (%(default)s)")
    parser.add_argument("--learning-rate", type=float, default=0.05, metavar="X", help="(%(default)s)")
    options = vars(parser.parse_args(argv))
    return run_command(lambda: _train_with(Corpus(options.pop("corpus")), options.pop("output"), options))


def _train_with(corpus: Corpus, output: Path, options: dict[str, Any]) -> None:
    """Train as the command line says; what it leaves out (None) follows from the size of the corpus."""
    words = count_words(corpus)
    of_size = {"epochs": epochs_for(words), "buckets": buckets_for(words), "min_count": min_count_for(words)}
    given = {name: value for name, value in options.items() if value is not None}
    train_fasttext(corpus, output, FastTextSettings(**of_size | given))


def count_words(corpus: Corpus) -> int:
    """The words of the training shards, without sentence boundaries."""
    return sum(shard.tokens - 2 * shard.sentences for shard in corpus.train)


def epochs_for(words: int) -> int:
    """Passes over a corpus of this size: 5 up to 1M words, 3 at 5M, 1 from 25M on."""
    return min(5, max(1, math.ceil(math.sqrt(25e6 / max(1, words)))))


def buckets_for(words: int) -> int:
    """Subword rows for a corpus of this size: 50,000 to two million, 100,000 at 1M words and 500,000 at 25M."""
    return min(2_000_000, max(50_000, round(100 * math.sqrt(words / 1e6)) * 1000))


def min_count_for(words: int) -> int:
    """Occurrences from which a word has a row of its own: 2 up to 2M words of text, then fastText's usual 5."""
    return 2 if words <= 2_000_000 else 5


def train_fasttext(corpus: Corpus, output: Path, settings: FastTextSettings) -> None:
    """Train on the training shards of `corpus` and write the model to `output`.

    The text is written beside the output for fastText to read, and removed afterwards. Raises `InputError` when the
    output exists, is being written or is not a `.bin`, the disk is too small, or the vectors are not finite.
    """
    if output.suffix != ".bin":
        raise InputError(f"{output}: the name of a fastText model ends in .bin")
    corpus.require_words()
    with locked(output):
        refuse_existing(output)
        _train(corpus, output, settings)


def _train(corpus: Corpus, output: Path, settings: FastTextSettings) -> None:
    rows = corpus.counts >= settings.min_count  # what fastText keeps; `</s>` is a word to it, `<s>` is not written
    rows[corpus.begin_id] = False
    known = int(rows.sum() - rows[corpus.end_id])
    if known < 1:
        raise InputError(
            f"no word of {corpus.path} occurs {settings.min_count} times in training: give a smaller --min-count"
        )
    lengths = np.array([len(word.encode()) for word in corpus.lexicon])
    model_bytes = model_size(lengths[rows], settings)
    require_space(output, model_bytes + int((lengths + 1) @ corpus.counts))
    words = count_words(corpus)
    print(
        f"{words:,} words, {known:,} of {corpus.types:,} types occur at least {settings.min_count} times; dimensions "
        f"{settings.dim}, epochs {settings.epochs}, buckets {settings.buckets:,}, threads {settings.workers}; the file "
        f"will have about {human_bytes(model_bytes)}",
        flush=True,
    )
    if words < _LITTLE_TEXT:
        print(
            f"warning: vectors of only {words:,} words of text are poor: published ones are better "
            "(docs/word_vectors.md): give their file to data_scripts.build_vectors, or to pretrain.recipe by --vectors",
            file=sys.stderr,
        )
    started = time.perf_counter()
    with temporary_path(output, "text") as text:
        write_text(corpus, text)
        with atomic_path(output) as partial:
            _train_in_child(text, partial, settings)
            _require_whole(partial)
    seconds = time.perf_counter() - started
    print(
        f"{output}: {human_bytes(output.stat().st_size)}, trained in {seconds:.0f} s "
        f"({words * settings.epochs / seconds:,.0f} words/s)"
    )


def model_size(lengths: np.ndarray, settings: FastTextSettings) -> int:
    """Bytes of the model's file, given those of its words: `</s>` and the words that occur often enough."""
    rows = 2 * len(lengths) + settings.buckets  # of both matrices: words and subwords, and words
    return (
        _HEADER_BYTES + int(lengths.sum()) + _ENTRY_BYTES * len(lengths) + 2 * _MATRIX_BYTES + 4 * settings.dim * rows
    )


def _require_whole(model: Path) -> None:
    """Raise the error of a full disk unless the model is whole: fastText does not notice that it cannot write."""
    try:
        open_file(model)
    except InputError:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(model)) from None


def write_text(corpus: Corpus, path: Path) -> None:
    """Write the training shards back as text, one sentence a line (fastText puts `</s>` at each line's end)."""
    words = list(corpus.lexicon)
    words[corpus.begin_id], words[corpus.end_id] = "", "\n"
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for shard in corpus.train:
            ids = corpus.read_shard(shard)
            for start in range(0, len(ids), _BLOCK_TOKENS):
                file.write(" ".join(map(words.__getitem__, ids[start : start + _BLOCK_TOKENS].tolist())) + " ")


def _train_in_child(text: Path, model: Path, settings: FastTextSettings) -> None:
    """Train in another process, which can be interrupted, and in which the library can crash alone."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_train_here, args=(text, model, settings, sender, os.getpid()), daemon=True)
    child.start()
    sender.close()
    message = None
    try:
        message = receiver.recv()
    except EOFError:
        pass
    except BaseException:
        child.terminate()
        raise
    finally:
        child.join()
    if message is None:
        message = f"fastText {how_it_ended([child])}: give fewer --buckets, or a smaller --dim"
    if message:
        raise InputError(message)


def _train_here(text: Path, model: Path, settings: FastTextSettings, sender: Connection, parent: int) -> None:
    end_with_parent(parent, signal.SIGKILL)
    import fasttext

    zero_fresh_memory()
    diverged = "the vectors diverged (they are not finite): give a smaller --learning-rate or more --buckets"
    try:
        # train_unsupervised takes every argument but this one, and reads it from here
        fasttext.FastText.unsupervised_default["seed"] = settings.seed
        trained = fasttext.train_unsupervised(
            str(text),
            model="skipgram",
            dim=settings.dim,
            epoch=settings.epochs,
            bucket=settings.buckets,
            minCount=settings.min_count,
            minn=_SHORTEST_SUBWORD,
            maxn=_LONGEST_SUBWORD,
            lr=settings.learning_rate,
            thread=settings.workers,
            verbose=2 if sys.stderr.isatty() else 0,  # its progress is written over itself
        )
        words = trained.get_words()
        finite = all(np.isfinite(trained.get_word_vector(word)).all() for word in words)
        if finite:
            with contextlib.suppress(
                ValueError
            ):  # it cannot be opened, which the parent sees, as it sees other failures
                trained.save_model(str(model))
        sender.send("" if finite else diverged)
    except RuntimeError as error:
        sender.send(diverged if "NaN" in str(error) else f"fastText: {error}")
    except (ValueError, MemoryError) as error:
        sender.send(f"fastText cannot be trained: {error}")


def zero_fresh_memory() -> None:
    """Have the C library fill all memory that this process allocates with zeros (no effect without glibc)."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_PERTURB, 0xFF)  # glibc fills with the complement


if __name__ == "__main__":
    sys.exit(main())
