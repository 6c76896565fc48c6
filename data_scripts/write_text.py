"""Writing text: the sentences of a corpus directory as tokenised text again, for other
tools.

They read as much of each source as an epoch of training reads: without the sentences
that were left out when the corpus was built, and each source as often as `data.sources`
says. A fraction of a source is the beginning of each of its shards. Words that were
left out by `--min-count` are `<unk>`.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta

from elmoc.command_line import run_main
from elmoc.corpus import MOST_TIMES, Corpus, Shard
from elmoc.errors import InputError, say
from elmoc.files.text import open_text
from elmoc.files.writing import locked, refuse_existing
from elmoc.process import progress_bar
from elmoc.settings import checked, value_from_text


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """Which text of a corpus is written."""

    corpus: Annotated[
        Path,
        Meta(description="corpus directory of words", extra={"metavar": "CORPUS"}),
    ]
    target: Annotated[
        Path, Meta(description="file to make, also .gz", extra={"metavar": "OUT"})
    ]
    held_out: Annotated[
        bool, Meta(description="the held-out text in place of the training text")
    ] = False
    sources: Annotated[
        tuple[str, ...],
        Meta(
            description="how many times each source is written, as in data.sources: 1 "
            "by default, 0 leaves it out, and 0.4 takes the first 40 % of each of its "
            "shards",
            extra={"metavar": "NAME=X"},
        ),
    ] = ()
    tokens: (
        Annotated[
            int,
            Meta(
                description="about N tokens at most, in the same proportions of all "
                "shards",
                extra={"metavar": "N"},
            ),
        ]
        | None
    ) = None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_main(
        TextOptions,
        write_text,
        argv,
        prog="python -m data_scripts.write_text",
        description="Write the text of a corpus directory: one sentence a line, and a "
        "blank line between documents.",
    )


def write_text(options: TextOptions) -> None:
    """Write the text of a corpus.

    Raises:
        InputError: the corpus cannot be read or is one of subwords, has not the sources
            of the options, or the target exists.
    """
    options = checked(options)
    target = options.target
    corpus = Corpus(options.corpus)
    corpus.require_words()
    shards = corpus.held_out if options.held_out else corpus.train
    times = _times(shards, options.sources)
    total = sum(times[shard.source] * shard.tokens for shard in shards)
    if options.tokens is not None and options.tokens < total:
        share = options.tokens / total
        times = {name: each * share for name, each in times.items()}
    written = 0
    bar = progress_bar(
        total=round(total), unit=" words", unit_scale=True, desc="writing"
    )
    with locked(target), bar:
        refuse_existing(target)
        with open_text(target) as file:
            for text, words in sentences(corpus, passes(shards, times)):
                file.write(text if written else text.removeprefix("\n"))
                written += words
                # `total` counts `<s>` and `</s>`, too.
                bar.update(words + 2)
            if not written:
                raise InputError(
                    f"--sources {' '.join(options.sources)} leaves no text: give "
                    "another source a number above 0"
                )
    say(f"{target}: {written:,} words")


def _times(shards: Sequence[Shard], given: Sequence[str]) -> dict[str, float]:
    """How many times each source is written, by default once, from NAME=X."""
    times = dict.fromkeys((shard.source for shard in shards), 1.0)
    for each in given:
        name, _, number = each.rpartition("=")
        value = value_from_text(number)
        is_number = isinstance(value, int | float)
        if name not in times or not is_number or not 0 <= value <= MOST_TIMES:
            raise InputError(
                f"--sources {each}: give NAME=X, a source ({', '.join(times)}), and X "
                f"from 0 to {MOST_TIMES:,}"
            )
        times[name] = value
    return times


def sentences(
    corpus: Corpus, parts: Iterable[tuple[Shard, int]]
) -> Iterator[tuple[str, int]]:
    """Yield the sentences of shards that have any words, each as its line of text and
    the number of its words; a blank line stands before each document.

    Args:
        corpus: of the shards.
        parts: the shards in their order, and for each the position before which the
            sentences begin that are yielded.
    """
    for shard, tokens in parts:
        ids = corpus.read_shard(shard)
        documents = set(corpus.read_documents(shard).tolist())
        begins = np.flatnonzero(ids == corpus.begin_id).tolist()
        for begin, end in zip(begins, [*begins[1:], len(ids)], strict=True):
            words = [corpus.lexicon[row] for row in ids[begin + 1 : end - 1].tolist()]
            if begin < tokens and words:
                line = " ".join(words) + "\n"
                yield f"\n{line}" if begin in documents else line, len(words)


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
