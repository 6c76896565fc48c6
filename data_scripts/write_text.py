"""Writing text: the sentences of a corpus directory as tokenised text again, for tools that read such.

So they read what an encoder read: without the sentences that were left out when the corpus was built, and each kind of
text as often as an epoch of training does (`data.sources`).
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor, isfinite
from pathlib import Path

from elmoc.corpus import Corpus, Shard
from elmoc.errors import InputError, run_command
from elmoc.files.locks import locked
from elmoc.files.writing import atomic_path, refuse_existing
from elmoc.progress import progress_bar

MOST_TIMES = 1_000
"""That a kind of text is written."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.write_text",
        description="Write the text of a corpus directory: one sentence a line, and a blank line between documents.",
    )
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="corpus directory of words")
    parser.add_argument("target", type=Path, metavar="OUT", help="file to make")
    parser.add_argument("--held-out", action="store_true", help="the held-out text (default: the training text)")
    parser.add_argument(
        "--times",
        nargs="+",
        default=[],
        metavar="NAME=X",
        help="how many times each kind of text is written, as data.sources has it: 1 unless said, 0 leaves it out, "
        "and of a fraction so many of its sentences, evenly spread",
    )
    options = vars(parser.parse_args(argv))
    return run_command(lambda: write_text(**options))


def write_text(corpus: Path, target: Path, *, times: Sequence[str] = (), held_out: bool = False) -> None:
    """Write the text of a corpus; see the command's help.

    Raises `InputError` for a corpus that cannot be read or has no words, kinds of text that it has not, and a target
    that exists.
    """
    source = Corpus(corpus)
    source.require_words()
    shards = source.held_out if held_out else source.train
    of_sources = parse_times(times, source.held_out_sources if held_out else source.sources)
    tokens: Counter[str] = Counter()
    sizes = [of_sources.get(shard.source, 1.0) * shard.tokens for shard in shards]
    with (
        locked(target),
        progress_bar(total=round(sum(sizes)), unit=" words", unit_scale=True, desc="writing text") as progress,
    ):
        refuse_existing(target)
        with atomic_path(target) as partial, open(partial, "w", encoding="utf-8", newline="\n") as file:
            for shard, share in passes(shards, of_sources):
                for words, is_first in chosen_sentences(source, shard, share):
                    file.write(("\n" if is_first and tokens else "") + " ".join(words) + "\n")
                    tokens[shard.source] += len(words)
                    progress.update(len(words) + 2)
            if not tokens:
                raise InputError(f"--times {' '.join(times)} leaves no text: give a kind of text more")
    kinds = ", ".join(f"{name} {count:,}" for name, count in tokens.items() if name)
    print(f"{target}: {tokens.total():,} words" + (f" ({kinds})" if kinds else ""))


def parse_times(times: Sequence[str], sources: Sequence[str]) -> dict[str, float]:
    """NAME=X as a mapping; an `InputError` for a name that is not a source, and an X that is no such number."""
    found = {}
    for text in times:
        name, _, number = text.rpartition("=")
        if name not in sources or not name:
            known = f"it has {', '.join(sources)}" if any(sources) else "its text has no names"
            raise InputError(f"--times {text}: the corpus has no kind of text {name!r:.50}; {known}")
        try:
            found[name] = float(number)
        except ValueError:
            found[name] = -1
        if not (isfinite(found[name]) and 0 <= found[name] <= MOST_TIMES):
            raise InputError(f"--times {text}: give a number from 0 to {MOST_TIMES:,}")
    return found


def passes(shards: Sequence[Shard], times: Mapping[str, float]) -> Iterator[tuple[Shard, float]]:
    """The shards and the share of each that is written, one pass after the other."""
    for number in range(max(1, ceil(max(times.values(), default=1)))):
        for shard in shards:
            share = min(1.0, times.get(shard.source, 1.0) - number)
            if share > 0:
                yield shard, share


def chosen_sentences(corpus: Corpus, shard: Shard, share: float) -> Iterator[tuple[list[str], bool]]:
    """A share of the sentences of a shard, evenly spread, and whether a document begins at each or since the last."""
    begins = False
    for number, (words, is_first) in enumerate(corpus.sentences(shard)):
        begins |= is_first
        if floor((number + 1) * share) > floor(number * share):
            yield words, begins
            begins = False


if __name__ == "__main__":
    sys.exit(main())
