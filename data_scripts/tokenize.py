"""Tokenising: raw text becomes one tokenised sentence a line, with blank lines between
documents.

Raw text: blank lines separate documents (or paragraphs) and stay document boundaries.
Lines wrapped to a width are joined first (decided once a file, see `looks_wrapped`),
any other line is split into sentences on its own. Text that is tokenised already passes
through line for line. That is decided once a file, from its first megabyte: it is
tokenised when more of its punctuation stands apart than touches a word
(`looks_tokenised`); --tokenised overrides it. The output counts as tokenised, so
running the command on it changes nothing. Byte order marks are left out wherever they
stand, and the lines `<doc …>` and `</doc>` of WikiExtractor are blank lines.
"""

import argparse
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from data_scripts.parts.workers import add_workers, parallel_map
from elmoc.batches import buffered
from elmoc.errors import InputError, run_command
from elmoc.files.text import open_text, read_lines
from elmoc.files.writing import locked, refuse_existing
from elmoc.process import progress_bar
from elmoc.text.suitable import check_suitable, first_lines
from elmoc.text.tokenizer import (
    BYTE_ORDER_MARK,
    SENTENCE_ENDS,
    looks_tokenised,
    looks_wrapped,
    sentence_splitter,
    tokenise_paragraph,
)

SAMPLE_CHARACTERS = 1_000_000
_BLOCK_CHARACTERS = 1 << 18
_OF_WIKIEXTRACTOR = re.compile(r"\s*(?:<doc\s+id=.*>|</doc>)\s*")
# characters that are tokenised at once, which takes a hundred times their memory
_LONGEST_PARAGRAPH = 1 << 20


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.tokenize",
        description="Raw text to one tokenised sentence a line; blank lines separate documents before and after. Text "
        "that is tokenised already passes through unchanged. Learns the language's abbreviations from the text.",
    )
    parser.add_argument(
        "source", type=Path, metavar="IN", help="UTF-8 text, also .gz, .bz2 or .xz"
    )
    parser.add_argument(
        "target", type=Path, metavar="OUT", help="file to make, also .gz"
    )
    text = "whether IN is tokenised already (auto: more of its punctuation stands apart than touches words)"
    parser.add_argument(
        "--tokenised", choices=("auto", "yes", "no"), default="auto", help=text
    )
    text = "whether lines of raw text are joined (auto: they are of a like width, and most end inside a sentence)"
    parser.add_argument(
        "--wrapped", choices=("auto", "yes", "no"), default="auto", help=text
    )
    add_workers(parser)
    options = vars(parser.parse_args(argv))
    for name in ("tokenised", "wrapped"):
        options[name] = {"auto": None, "yes": True, "no": False}[options[name]]
    return run_command(lambda: tokenise_file(**options))


def tokenise_file(
    source: Path,
    target: Path,
    *,
    tokenised: bool | None = None,
    wrapped: bool | None = None,
    workers: int = 1,
) -> None:
    """Tokenise `source` into `target`; `tokenised` and `wrapped` None are decided from
    the start of the file.

    Raises `InputError` when the target exists or is being written, or the source is
    missing, broken, no UTF-8, or JSON lines.
    """
    started = time.perf_counter()
    words = sentences = 0
    with locked(target):
        refuse_existing(target)
        sample = [
            _without_markup(line)
            for line in first_lines(read_lines(source), SAMPLE_CHARACTERS)
        ]
        check_suitable(source)
        text = "\n".join(sample)
        tokenised = looks_tokenised(text) if tokenised is None else tokenised
        wrapped = looks_wrapped(sample) if wrapped is None else wrapped
        with open_text(target) as file:
            bar = progress_bar(
                iterable=read_lines(source),
                desc="tokenising",
                unit=" lines",
                unit_scale=True,
            )
            lines: Iterable[str] = map(_without_markup, bar)
            if tokenised:
                print(
                    f"{source} is tokenised already: its lines stay as they are (--tokenised no tokenises them)"
                )
            else:
                print(
                    f"{source} is raw text, {'wrapped: its lines are joined' if wrapped else 'not wrapped'}"
                )
                split = sentence_splitter(text)

                def tokenise(paragraphs: Sequence[str]) -> list[str]:
                    """The sentences of paragraphs, as lines; "" for an empty one, where
                    a document ends.
                    """
                    found = (
                        tokenise_paragraph(each, split) if each else [[""]]
                        for each in paragraphs
                    )
                    return [
                        " ".join(sentence) for sentence in chain.from_iterable(found)
                    ]

                paragraphs = buffered(
                    _paragraphs(lines, wrapped), len, most=_BLOCK_CHARACTERS
                )
                blocks = parallel_map(tokenise, paragraphs, workers)
                lines = single_blank_lines(chain.from_iterable(blocks))
            for line in lines:
                file.write(f"{line}\n")
                words += len(line.split())
                sentences += bool(line.strip())
            if not words:
                raise InputError(f"{source} has no words")
    seconds = time.perf_counter() - started
    print(
        f"{target}: {words:,} words in {sentences:,} sentences ({words / seconds:,.0f} words/s)"
    )


def _without_markup(line: str) -> str:
    """A line without byte order marks; "" for one of WikiExtractor, which begins or
    ends an article.
    """
    line = line.replace(BYTE_ORDER_MARK, "")
    return "" if _OF_WIKIEXTRACTOR.fullmatch(line) else line


def _paragraphs(lines: Iterable[str], wrapped: bool) -> Iterator[str]:
    """Lines, or the joined lines between blank lines; "" for every blank line.

    A paragraph of more than `_LONGEST_PARAGRAPH` is cut where a sentence seems to end,
    else between words, else anywhere.
    """
    waiting = ""
    for line in chain(lines, [""]):
        text = line.strip()
        waiting += f" {text}"
        while len(waiting) > _LONGEST_PARAGRAPH:
            sentence = max(
                waiting.rfind(f"{mark} ", 0, _LONGEST_PARAGRAPH)
                for mark in SENTENCE_ENDS
            )
            end = (
                sentence + 1
                or waiting.rfind(" ", 1, _LONGEST_PARAGRAPH) + 1
                or _LONGEST_PARAGRAPH
            )
            yield waiting[:end].strip()
            waiting = waiting[end:]
        if not (text and wrapped):
            yield from [waiting.strip()] if waiting.strip() else []
            yield from [] if text else [""]
            waiting = ""


def single_blank_lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines with one blank line where there were several, and none at the start or
    end.
    """
    blank = started = False
    for line in lines:
        if line:
            yield from ["", line] if blank and started else [line]
            started = True
        blank = not line


if __name__ == "__main__":
    sys.exit(main())
