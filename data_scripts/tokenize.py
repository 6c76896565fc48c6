"""Tokenising a file: raw text becomes one tokenised sentence a line, with blank lines
between documents.

What becomes of which text is told in `parts/tokenising.py`.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from data_scripts.parts.tokenising import Answer, Keep, Tokeniser
from data_scripts.parts.workers import Workers
from elmoc.command_line import run_main
from elmoc.errors import InputError, say
from elmoc.files.text import open_text
from elmoc.files.writing import locked, refuse_existing
from elmoc.process import available_cores, progress_bar
from elmoc.text.documents import TextRange, lines_of, read_documents, rereadable


@dataclass(frozen=True, kw_only=True)
class TokenizeOptions:
    """The command `python -m data_scripts.tokenize`."""

    source: Annotated[
        str,
        Meta(
            description="UTF-8 text, also .gz, .bz2 or .xz; - for standard input",
            extra={"metavar": "IN"},
        ),
    ]
    target: Annotated[
        Path, Meta(description="file to make, also .gz", extra={"metavar": "OUT"})
    ]
    tokenised: Annotated[
        Answer,
        Meta(
            description="whether IN is tokenised already (auto: more of its "
            "punctuation stands apart than touches words)"
        ),
    ] = "auto"
    wrapped: Annotated[
        Answer,
        Meta(
            description="whether lines of raw text are joined (auto: they are of a "
            "like width, and most end inside a sentence)"
        ),
    ] = "auto"
    keep: Keep = ()
    workers: Workers = field(default_factory=available_cores)


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_main(
        TokenizeOptions,
        tokenise_file,
        argv,
        prog="python -m data_scripts.tokenize",
        description="Raw text to one tokenised sentence a line; blank lines separate "
        "documents before and after. Text that is tokenised already passes through "
        "unchanged. Learns the language's abbreviations from the text.",
    )


def tokenise_file(options: TokenizeOptions) -> None:
    """Tokenise a file.

    Raises:
        InputError: the target exists or is being written; the source is missing,
            broken, not UTF-8, or JSON lines.
    """
    target = options.target
    words = 0
    with locked(target), rereadable(options.source) as path:
        refuse_existing(target)
        tokeniser = Tokeniser(
            path,
            tokenised=options.tokenised,
            wrapped=options.wrapped,
            keep=options.keep,
        )
        how = "wrapped: its lines are joined" if tokeniser.wrapped else "not wrapped"
        kind = "tokenised already" if tokeniser.tokenised else f"raw text, {how}"
        say(f"{path} is {kind}")
        if options.keep and tokeniser.tokenised:
            say("warning: --keep acts on raw text alone", file=sys.stderr)
        bar = progress_bar(
            iterable=lines_of(read_documents(TextRange(path))),
            desc="tokenising",
            unit=" lines",
            unit_scale=True,
        )
        with open_text(target) as file:
            for line in tokeniser.lines(bar, workers=options.workers):
                file.write(f"{line}\n")
                words += len(line.split())
            if not words:
                raise InputError(f"{path} has no words")
    say(f"{target}: {words:,} words")


if __name__ == "__main__":
    sys.exit(main())
