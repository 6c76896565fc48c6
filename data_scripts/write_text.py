"""Writing text: the sentences of a corpus directory as tokenised text again, for tools
that read such.

So they read as much of each source as an epoch of training reads: without the sentences
that were left out when the corpus was built, and each source as often as `data.sources`
says. Of a fraction it is the beginning of every shard. Words that were left out by
`--min-count` are `<unk>`.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from math import ceil, nan
from pathlib import Path

import numpy as np

from elmoc.corpus import MOST_TIMES, Corpus, Shard
from elmoc.errors import InputError, run_command
from elmoc.files.text import open_text
from elmoc.files.writing import locked, refuse_existing
from elmoc.process import progress_bar


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.write_text",
        description="Write the text of a corpus directory: one sentence a line, and a blank line between documents.",
    )
    parser.add_argument(
        "corpus", type=Path, metavar="CORPUS", help="corpus directory of words"
    )
    parser.add_argument(
        "target", type=Path, metavar="OUT", help="file to make, also .gz"
    )
    parser.add_argument(
        "--held-out",
        action="store_true",
        help="the held-out text (default: the training text)",
    )
    parser.add_argument(
        "--sources",
        nargs="+",
        default=[],
        metavar="NAME=X",
        help="how many times each source is written, as in data.sources: 1 by default, 0 leaves it out, and 0.4 takes "
        "the first 40 %% of each of its shards",
    )
    parser.add_argument(
        "--tokens",
        type=int,
        metavar="N",
        help="about N tokens at most, in the same proportions of all shards",
    )
    options = vars(parser.parse_args(argv))
    return run_command(lambda: write_text(**options))


def write_text(
    corpus: Path,
    target: Path,
    *,
    sources: Sequence[str] = (),
    held_out: bool = False,
    tokens: int | None = None,
) -> None:
    """Write the text of a corpus; see the command's help.

    Raises `InputError` for a corpus that cannot be read or is one of subwords, for
    sources that it has not, and for a target that exists.
    """
    source = Corpus(corpus)
    source.require_words()
    shards = source.held_out if held_out else source.train
    times = dict.fromkeys((shard.source for shard in shards), 1.0)
    for given in sources:
        name, _, number = given.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = nan
        if name not in times or not 0 <= value <= MOST_TIMES:
            known = (
                ", ".join(filter(None, times)) or "none, since its text has no names"
            )
            raise InputError(
                f"--sources {given}: give NAME=X, a source ({known}), and X from 0 to {MOST_TIMES:,}"
            )
        times[name] = value
    total = sum(times[shard.source] * shard.tokens for shard in shards)
    if tokens is not None and tokens < total:
        times = {name: each * tokens / total for name, each in times.items()}
    written = 0
    with (
        locked(target),
        progress_bar(
            total=round(total), unit=" words", unit_scale=True, desc="writing"
        ) as bar,
    ):
        refuse_existing(target)
        with open_text(target) as file:
            for text, words in sentences(source, passes(shards, times)):
                file.write(text.removeprefix("\n") if not written else text)
                written += words
                bar.update(words + 2)
            if not written:
                raise InputError(
                    f"--sources {' '.join(sources)} leaves no text: give another source a number above 0"
                )
    print(f"{target}: {written:,} words")


def sentences(
    corpus: Corpus, parts: Iterable[tuple[Shard, int]]
) -> Iterator[tuple[str, int]]:
    """The sentences of shards that have any words, each as its line of text and the
    number of its words.

    A blank line stands before each document. `parts` are the shards in their order, and
    of each the position before which the sentences begin that are yielded.
    """
    for shard, tokens in parts:
        ids = corpus.read_shard(shard)
        documents = set(corpus.read_documents(shard).tolist())
        begins = np.flatnonzero(ids == corpus.begin_id).tolist()
        for begin, end in zip(begins, [*begins[1:], len(ids)], strict=True):
            words = [corpus.lexicon[row] for row in ids[begin + 1 : end - 1].tolist()]
            if begin < tokens and words:
                yield "\n" * (begin in documents) + " ".join(words) + "\n", len(words)


def passes(
    shards: Sequence[Shard], times: dict[str, float]
) -> Iterator[tuple[Shard, int]]:
    """The shards and the number of tokens of each that are written, one pass after the
    other.
    """
    for number in range(max(1, ceil(max(times.values())))):
        for shard in shards:
            share = min(1.0, times[shard.source] - number)
            if share > 0:
                yield shard, ceil(share * shard.tokens)


if __name__ == "__main__":
    sys.exit(main())
