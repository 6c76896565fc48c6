"""Writing text: the sentences of a corpus directory as tokenised text again, for other
tools.

They read as much as an epoch of training reads: without the sentences that were left
out when the corpus was built. A part of the text is the beginning of each of its
shards. Words that were left out by `--min-count` are `<unk>`.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta

from elmoc.command_line import run_main
from elmoc.corpus import Corpus, Shard
from elmoc.errors import say
from elmoc.files.text import open_text
from elmoc.files.writing import locked
from elmoc.process import progress_bar


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
    tokens: (
        Annotated[
            int,
            Meta(
                ge=1,
                description="about N tokens at most, in the same proportions of all "
                "shards",
                extra={"metavar": "N"},
            ),
        ]
        | None
    ) = None


def write_text(options: TextOptions) -> None:
    """Write the text of a corpus.

    Raises:
        InputError: the corpus cannot be read or is one of subwords, or the target
            exists.
    """
    corpus = Corpus(options.corpus)
    corpus.require_words()
    shards = corpus.held_out if options.held_out else corpus.train
    total = sum(shard.tokens for shard in shards)
    share = min(1.0, (options.tokens or total) / total)
    written = 0
    with (
        locked(options.target, new=True),
        progress_bar(
            total=round(share * total), unit=" words", unit_scale=True, desc="writing"
        ) as bar,
        open_text(options.target) as file,
    ):
        for text, words in sentences(corpus, shards, share):
            file.write(text if written else text.removeprefix("\n"))
            written += words
            # `total` counts `<s>` and `</s>`, too.
            bar.update(words + 2)
    say(f"{options.target}: {written:,} words")


def sentences(
    corpus: Corpus, shards: Iterable[Shard], share: float = 1.0
) -> Iterator[tuple[str, int]]:
    """Yield the sentences of shards, each as its line of text and the number of its
    words; a blank line stands before each document.

    Args:
        corpus: of the shards.
        shards: in their order.
        share: of each shard, from its beginning.
    """
    wanted = 0.0
    for shard in shards:
        # What a sentence has more than was wanted, the next shard has less.
        wanted += share * shard.tokens
        ids = corpus.read_shard(shard)
        documents = set(corpus.read_documents(shard).tolist())
        begins = np.flatnonzero(ids == corpus.begin_id).tolist()
        for begin, end in pairwise([*begins, len(ids)]):
            if wanted <= 0:
                break
            words = [corpus.lexicon[row] for row in ids[begin + 1 : end - 1].tolist()]
            if words:
                wanted -= end - begin
                line = " ".join(words) + "\n"
                yield f"\n{line}" if begin in documents else line, len(words)


main = partial(
    run_main,
    TextOptions,
    write_text,
    prog="python -m data_scripts.write_text",
    description="Write the text of a corpus directory: one sentence a line, and a "
    "blank line between documents.",
)

if __name__ == "__main__":
    sys.exit(main())
