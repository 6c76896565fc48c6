"""Writing text: the sentences of a corpus directory as tokenised text again, for tools that read such.

So they read as much of each source as an epoch of training reads: without the sentences that were left out when the
corpus was built, and each source as often as `data.sources` says. (Of a fraction it is the beginning of every shard,
where training reads some shards whole, others in the next epoch.) Words that were left out by `--min-count` are
`<unk>`.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path

from elmoc.corpus import MOST_TIMES, Corpus, Shard
from elmoc.errors import InputError, run_command
from elmoc.files.locks import locked
from elmoc.files.text import open_text
from elmoc.files.writing import refuse_existing
from elmoc.progress import progress_bar


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.write_text",
        description="Write the text of a corpus directory: one sentence a line, and a blank line between documents.",
    )
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="corpus directory of words")
    parser.add_argument("target", type=Path, metavar="OUT", help="file to make, also .gz")
    parser.add_argument("--held-out", action="store_true", help="the held-out text (default: the training text)")
    parser.add_argument(
        "--sources",
        nargs="+",
        default=[],
        metavar="NAME=X",
        help="how many times each source is written, as data.sources has it: 1 unless said, 0 leaves it out, and of a "
        "fraction so much from the beginning of each of its shards",
    )
    options = vars(parser.parse_args(argv))
    return run_command(lambda: write_text(**options))


def write_text(corpus: Path, target: Path, *, sources: Sequence[str] = (), held_out: bool = False) -> None:
    """Write the text of a corpus; see the command's help.

    Raises `InputError` for a corpus that cannot be read or is one of subwords, for sources that it has not, and for a
    target that exists.
    """
    source = Corpus(corpus)
    source.require_words()
    shards = source.held_out if held_out else source.train
    times = parse_sources(sources, source.held_out_sources if held_out else source.sources)
    tokens: Counter[str] = Counter()
    sizes = [times.get(shard.source, 1.0) * shard.tokens for shard in shards]
    with (
        locked(target),
        progress_bar(total=round(sum(sizes)), unit=" words", unit_scale=True, desc="writing text") as progress,
    ):
        refuse_existing(target)
        parts = ((shard, ceil(share * shard.tokens)) for shard, share in passes(shards, times))
        with open_text(target) as file:
            for shard, words in source.written_sentences(parts, file):
                tokens[shard.source] += len(words)
                progress.update(len(words) + 2)
            if not tokens:
                raise InputError(f"--sources {' '.join(sources)} leaves no text: give another source a number above 0")
    by_source = ", ".join(f"{name} {count:,}" for name, count in tokens.items() if name)
    print(f"{target}: {tokens.total():,} words" + (f" ({by_source})" if by_source else ""))


def parse_sources(given: Sequence[str], sources: Sequence[str]) -> dict[str, float]:
    """NAME=X as a mapping; an `InputError` for a name that is not a source, and an X that is no such number."""
    found = {}
    for text in given:
        name, _, number = text.rpartition("=")
        if name not in sources or not name:
            known = f"it has {', '.join(sources)}" if any(sources) else "its text has no names"
            raise InputError(f"--sources {text}: the corpus has no source {name!r:.50}; {known}")
        try:
            found[name] = float(number)
        except ValueError:
            found[name] = -1
        if not 0 <= found[name] <= MOST_TIMES:
            raise InputError(f"--sources {text}: give a number from 0 to {MOST_TIMES:,}")
    return found


def passes(shards: Sequence[Shard], times: Mapping[str, float]) -> Iterator[tuple[Shard, float]]:
    """The shards and the share of each that is written, one pass after the other."""
    for number in range(max(1, ceil(max(times.values(), default=1)))):
        for shard in shards:
            share = min(1.0, times.get(shard.source, 1.0) - number)
            if share > 0:
                yield shard, share


if __name__ == "__main__":
    sys.exit(main())
