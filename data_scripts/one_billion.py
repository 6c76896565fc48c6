"""One Billion Word: the benchmark's archive becomes a corpus directory, split as in the ELMo-C paper.

Of the 99 training chunks (`training-monolingual.tokenized.shuffled/news.en-00001-of-00100` to `…-00099-…`) the last,
00099, is held out, and the other 98 are trained on; the archive's own held-out set is not used. The chunks of an
archive are unpacked beside the corpus and removed when it is finished. Safe to interrupt and run again.
"""

import argparse
import gzip
import re
import shutil
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from data_scripts.build_corpus import build_corpus
from data_scripts.parts.workers import add_workers
from elmoc.errors import InputError, reading, run_command
from elmoc.files.locks import locked
from elmoc.files.writing import atomic_directory

HELD_OUT_CHUNK = 99
_CHUNK = re.compile(r"training-monolingual\.tokenized\.shuffled/news\.en-([0-9]{5})-of-00100$")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.one_billion",
        description="Make a corpus directory from the One Billion Word benchmark "
        "(1-billion-word-language-modeling-benchmark-r13output.tar.gz): chunk 00099 of its training chunks is held "
        "out, the others are trained on.",
    )
    parser.add_argument("archive", type=Path, metavar="ARCHIVE", help="the archive, or the folder it was unpacked to")
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="the corpus directory to make")
    add_workers(parser)
    options = vars(parser.parse_args(argv))
    return run_command(lambda: one_billion(**options))


def one_billion(archive: Path, corpus: Path, *, workers: int = 1) -> None:
    """Build `corpus` from the archive or its folder; raises `InputError` unless that has each chunk once."""
    if archive.is_dir():
        _build(archive, corpus, workers)
        return
    folder = corpus.parent / f".{corpus.name}.unpacked"
    with locked(folder):
        if not folder.exists():
            unpack(archive, folder)
        _build(folder, corpus, workers)
        shutil.rmtree(folder)


def _build(folder: Path, corpus: Path, workers: int) -> None:
    chunks = chunks_of(folder, folder)
    build_corpus(chunks, corpus, held_out=chunks[-1:], workers=workers)


def chunks_of(folder: Path, source: Path) -> list[str]:
    """The training chunks below a folder, in order; an `InputError` naming their `source` unless each is there once."""
    chunks = sorted(str(path) for path in folder.rglob("news.en-*") if _CHUNK.search(str(path)))
    numbers = [int(found[1]) for chunk in chunks if (found := _CHUNK.search(chunk))]
    if numbers != list(range(1, HELD_OUT_CHUNK + 1)):
        raise InputError(
            f"{source} has {len(chunks)} chunks training-monolingual.tokenized.shuffled/news.en-NNNNN-of-00100, where "
            f"each from 1 to {HELD_OUT_CHUNK} is needed once: give the benchmark's archive"
        )
    return chunks


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the training chunks of the archive into `folder`, which appears when all of it is read and whole."""
    print(f"unpacking {archive}", flush=True)
    with atomic_directory(folder) as partial, reading(archive), gzip.open(archive) as content:
        with tarfile.open(fileobj=content, mode="r|") as members:
            for member in members:
                if _CHUNK.search(member.name):
                    members.extract(member, partial, filter="data")
        while content.read(1 << 20):  # to gzip's checksum at the end, which `tarfile` does not read
            pass
        chunks_of(partial, archive)


if __name__ == "__main__":
    sys.exit(main())
