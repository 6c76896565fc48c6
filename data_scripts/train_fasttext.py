"""Training of fastText word vectors on the training shards of a corpus.

fastText gives random values to the first `threads / 10` of its rows only, and leaves the others as it finds the memory:
zeros or, in a small model, leftovers that make it diverge or differ from run to run. Here they are always zeros, so a
string made of subwords that training never saw has the zero vector.
"""

import argparse
import contextlib
import ctypes
import math
import os
import re
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from data_scripts.parts.workers import add_workers
from elmoc.corpus import Corpus
from elmoc.errors import InputError, run_command
from elmoc.files.locks import locked
from elmoc.files.writing import atomic_path, human_bytes, refuse_existing, temporary_path
from elmoc.process import end_with_parent
from elmoc.progress import progress_bar
from elmoc.settings import check_settings, setting
from elmoc.word_vectors.fasttext.file import MAX_SIZE, open_file

_BLOCK_TOKENS = 1 << 20
_M_PERTURB = -6  # of glibc's malloc.h
_LITTLE_TEXT = 1_000_000  # words; fewer give poor vectors
_LARGEST = 2**31 - 1  # fastText's numbers are C's int
_PROGRESS = re.compile(rb"Progress:\s*([\d.]+)%")


@dataclass(frozen=True, kw_only=True)
class FastTextSettings:
    """What fastText is trained with; `workers` threads. Raises `InputError` for what the library does not check."""

    seed: int = setting(0, least=0, most=_LARGEST)
    dim: int = setting(300, above=0, most=MAX_SIZE)
    epochs: int = setting(above=0, most=100_000)
    buckets: int = setting(above=0, most=_LARGEST)
    min_count: int = setting(above=0, most=_LARGEST)
    learning_rate: float = setting(0.05, above=0)
    workers: int = setting(1, least=1, most=1024)

    def __post_init__(self) -> None:
        check_settings(self, lambda name: f"--{name.replace('_', '-')}")


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
    for name, kind, text in (
        ("--dim", int, "width of the vectors (300)"),
        ("--epochs", int, "passes over the corpus (5 up to 1M words, 1 from 25M)"),
        ("--buckets", int, "rows for hashed subwords (100,000 for 1M words, growing as the root)"),
        ("--min-count", int, "rarer words have no row of their own, only subwords (2 up to 2M words, then 5)"),
        ("--seed", int, "of the random start (0)"),
        ("--learning-rate", float, "(0.05)"),
    ):
        parser.add_argument(name, type=kind, default=argparse.SUPPRESS, metavar="N", help=text)
    add_workers(parser)
    options = vars(parser.parse_args(argv))

    def run() -> None:
        corpus, output = Corpus(options.pop("corpus")), options.pop("output")
        train_fasttext(corpus, output, settings_for(count_words(corpus), **options))

    return run_command(run)


def count_words(corpus: Corpus) -> int:
    """The words of the training shards, without sentence boundaries."""
    return sum(shard.tokens - 2 * shard.sentences for shard in corpus.train)


def settings_for(words: int, **given: Any) -> FastTextSettings:
    """The settings that suit a text of this number of words, but for those `given`."""
    of_size = {
        # 5 passes up to 1M words, 3 at 5M, 1 from 25M on
        "epochs": min(5, max(1, math.ceil(math.sqrt(25e6 / max(1, words))))),
        # 50,000 to two million rows of subwords, 100,000 at 1M words and 500,000 at 25M: two million are 2.4 GB
        "buckets": min(2_000_000, max(50_000, round(100 * math.sqrt(words / 1e6)) * 1000)),
        # fastText's usual 5 leaves too few words of little text a row of their own
        "min_count": 2 if words <= 2_000_000 else 5,
    }
    return FastTextSettings(**of_size | given)


def train_fasttext(corpus: Corpus, output: Path, settings: FastTextSettings) -> None:
    """Train on the training shards of `corpus` and write the model to `output`.

    The text is written beside the output for fastText to read, and removed afterwards. Raises `InputError` when the
    output exists, is being written or is not a `.bin`, no word is frequent enough, or the vectors are not finite.
    """
    if output.suffix != ".bin":
        raise InputError(f"{output}: the name of a fastText model ends in .bin")
    corpus.require_words()
    known = int((corpus.counts >= settings.min_count).sum())
    if known <= 2:  # `<s>` and `</s>`; fastText would train on these alone
        raise InputError(f"no word of {corpus.path} occurs {settings.min_count} times: give a smaller --min-count")
    words = count_words(corpus)
    print(
        f"{words:,} words, {known:,} types that occur {settings.min_count} times or more; dimensions {settings.dim}, "
        f"epochs {settings.epochs}, buckets {settings.buckets:,}, threads {settings.workers}",
        flush=True,
    )
    if words < _LITTLE_TEXT:
        print("warning: vectors of so little text are poor: published ones are better (docs/train.md)", file=sys.stderr)
    started = time.monotonic()
    with locked(output):
        refuse_existing(output)
        with temporary_path(output, "text") as text, atomic_path(output) as partial:
            write_text(corpus, text)
            _train_in_child(text, partial, settings)
            open_file(partial)  # fastText does not notice that it cannot write: a model that is not whole fails here
    seconds = time.monotonic() - started
    speed = words * settings.epochs / seconds
    print(f"{output}: {human_bytes(output.stat().st_size)}, trained in {seconds:.0f} s ({speed:,.0f} words/s)")


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
    """Train in another process, which can be interrupted, in which the library can crash alone, and whose progress,
    which the library prints over itself on standard error, can be read."""
    read_end, write_end = os.pipe()
    child = get_context("fork").Process(
        target=_train_here, args=(text, model, settings, write_end, os.getpid()), daemon=True
    )
    child.start()
    os.close(write_end)
    said = b""
    try:
        with (
            open(read_end, "rb", buffering=0) as errors,
            progress_bar(
                total=100, desc="fastText", unit="%", bar_format="{l_bar}{bar}| {elapsed} < {remaining}"
            ) as bar,
        ):
            while chunk := errors.read(4096):
                said = (said + chunk)[-4096:]
                if found := _PROGRESS.findall(said):
                    bar.update(float(found[-1]) - bar.n)
    except BaseException:
        child.terminate()
        raise
    finally:
        child.join()
    if child.exitcode:
        last = said.decode(errors="replace").strip().splitlines()[-1:]
        why = f"was ended by signal {-child.exitcode}" if child.exitcode < 0 else f"failed: {''.join(last)}"
        raise InputError(f"fastText {why}: with too little memory give fewer --buckets or a smaller --dim")


def _train_here(text: Path, model: Path, settings: FastTextSettings, errors: int, parent: int) -> None:
    os.dup2(errors, 2)
    os.close(errors)
    end_with_parent(parent, signal.SIGKILL)
    import fasttext

    zero_fresh_memory()
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
            minn=3,
            maxn=6,
            lr=settings.learning_rate,
            thread=settings.workers,
            verbose=2,
        )
        if not all(np.isfinite(trained.get_word_vector(word)).all() for word in trained.get_words()):
            raise RuntimeError("the vectors diverged (they are not finite): give a smaller --learning-rate")
        trained.save_model(str(model))
    except Exception as error:
        os.write(2, f"\n{error}".encode())
        os._exit(1)


def zero_fresh_memory() -> None:
    """Have the C library fill all memory that this process allocates with zeros (no effect without glibc)."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_PERTURB, 0xFF)  # glibc fills with the complement


if __name__ == "__main__":
    sys.exit(main())
