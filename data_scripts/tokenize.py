"""Tokenising: raw text of any kind becomes a file with one tokenised sentence a line,
and blank lines between documents.

What becomes of which text is told in `parts/tokenising.py`.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from data_scripts.parts.tokenising import (
    Tokeniser,
    listed,
    single_blank_lines,
    tokenisers_of,
)
from data_scripts.parts.workers import Workers, parallel_map
from elmoc.command_line import run_main
from elmoc.errors import InputError, say
from elmoc.files.text import open_text
from elmoc.files.writing import locked
from elmoc.process import available_cores, progress_bar
from elmoc.text.documents import (
    RowCount,
    estimate_text_bytes,
    lines_of,
    read_documents,
    rereadable,
    whole_files,
)
from elmoc.text.named_files import find_named_files
from elmoc.text.options import Answer, RawTextOptions


@dataclass(frozen=True, kw_only=True)
class TokenizeOptions(RawTextOptions):
    """The command `python -m data_scripts.tokenize`."""

    sources: Annotated[
        list[str],
        Meta(
            description="text, or rows (.jsonl, .csv, .tsv, .parquet): files, also "
            "compressed, folders, or quoted globs; - is standard input",
            extra={"metavar": "IN"},
        ),
    ]
    target: Annotated[
        Path, Meta(description="file to make, also .gz", extra={"metavar": "OUT"})
    ]
    wrapped: Annotated[
        Answer,
        Meta(
            description="whether lines of raw text are joined (auto: they are of a "
            "like width, and most end inside a sentence)"
        ),
    ] = "auto"
    workers: Workers = field(default_factory=available_cores)


def tokenise_files(options: TokenizeOptions) -> None:
    """Tokenise files, one after the other, into one file.

    Raises:
        InputError: the target exists or is being written; a source is missing, broken,
            or not UTF-8.
    """
    target = options.target
    with ExitStack() as stack:
        stack.enter_context(locked(target, new=True))
        paths = [stack.enter_context(rereadable(each)) for each in options.sources]
        texts = whole_files(find_named_files(paths), options.field)
        tokenisers = tokenisers_of(texts, options, options.wrapped)
        files = [each.text.path for each in tokenisers]
        size = estimate_text_bytes(files)
        bar = stack.enter_context(
            progress_bar(total=size, unit="B", unit_scale=True, desc="tokenising")
        )
        words = 0
        with open_text(target) as file:
            for line in tokenised_lines(tokenisers, bar, options.workers):
                file.write(f"{line}\n")
                words += len(line.split())
            if not words:
                raise InputError(f"{listed(files)} has no words")
    say(f"{target}: {words:,} words")


def tokenised_lines(
    tokenisers: Sequence[Tokeniser], bar: Any, workers: int
) -> Iterator[str]:
    """The tokenised lines of files, and a blank line between two files; a printed line
    tells rows without text.

    Args:
        tokenisers: of the files.
        bar: of the bytes of their text.
        workers: processes.
    """
    rows = RowCount()

    def blocks() -> Iterator[tuple[int, list[str]]]:
        for number, each in enumerate(tokenisers):
            for block in each.blocks(lines_of(read_documents(each.text, count=rows))):
                bar.update(sum(len(line.encode()) + 1 for line in block))
                yield number, block
        # The size of compressed text, and of text in rows, was estimated.
        bar.update(bar.total - bar.n)

    def tokenise(item: tuple[int, list[str]]) -> tuple[int, list[str]]:
        number, block = item
        return number, tokenisers[number].tokenise(block)

    # Text that is tokenised already only passes.
    is_raw = not all(each.tokenised for each in tokenisers)
    tokenised = parallel_map(tokenise, blocks(), workers if is_raw else 1)
    for place, (number, own) in enumerate(groupby(tokenised, key=itemgetter(0))):
        if place > 0:
            yield ""
        lines = chain.from_iterable(block for _, block in own)
        yield from lines if tokenisers[number].tokenised else single_blank_lines(lines)
    rows.tell(listed([each.text.path for each in tokenisers]))


main = partial(
    run_main,
    TokenizeOptions,
    tokenise_files,
    prog="python -m data_scripts.tokenize",
    description="Raw text to one tokenised sentence a line; blank lines separate "
    "documents before and after. Text that is tokenised already passes through "
    "unchanged. Learns the language's abbreviations from the text.",
)

if __name__ == "__main__":
    sys.exit(main())
