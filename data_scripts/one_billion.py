"""One Billion Word: the benchmark's folder becomes a corpus directory, split as in the ELMo-C paper.

Of the 99 training chunks (`training-monolingual.tokenized.shuffled/news.en-00001-of-00100` to `…-00099-…`) the last,
00099, is held out, and the other 98 are trained on; the archive's own held-out set is not used.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from data_scripts.build_corpus import build_corpus
from data_scripts.parts.workers import add_workers
from elmoc.errors import InputError, run_command

HELD_OUT_CHUNK = 99
_CHUNK = re.compile(r"training-monolingual\.tokenized\.shuffled/news\.en-([0-9]{5})-of-00100$")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.one_billion",
        description="Make a corpus directory from the One Billion Word benchmark: the last training chunk is held "
        "out, the others are trained on. Safe to interrupt and run again.",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="what the benchmark's archive was unpacked to")
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="the corpus directory to make")
    add_workers(parser)
    options = vars(parser.parse_args(argv))
    return run_command(lambda: one_billion(**options))


def one_billion(folder: Path, corpus: Path, *, workers: int = 1) -> None:
    """Build `corpus` from the unpacked archive; raises `InputError` unless it has each training chunk once."""
    chunks = sorted(str(path) for path in folder.rglob("news.en-*") if _CHUNK.search(str(path)))
    numbers = [int(found[1]) for chunk in chunks if (found := _CHUNK.search(chunk))]
    if numbers != list(range(1, HELD_OUT_CHUNK + 1)):
        raise InputError(
            f"{folder} has {len(chunks)} chunks training-monolingual.tokenized.shuffled/news.en-NNNNN-of-00100, where "
            f"each from 1 to {HELD_OUT_CHUNK} is needed once: give the folder of the whole archive"
        )
    build_corpus(chunks, corpus, held_out=chunks[-1:], workers=workers)


if __name__ == "__main__":
    sys.exit(main())
