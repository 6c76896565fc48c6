"""Tokenising: raw text becomes one tokenised sentence a line, with blank lines between documents.

Raw text: blank lines separate documents (or paragraphs) and stay document boundaries. Lines wrapped to a width are
joined first (decided once a file, see `looks_wrapped`), any other line is split into sentences on its own. Text that is
tokenised already passes through line for line. That is decided once a file, from its first megabyte: it is tokenised
when more of its punctuation stands apart than touches a word (`looks_tokenised`); --tokenised overrides it. The output
counts as tokenised, so running the command on it changes nothing. Byte order marks are left out wherever they stand.
"""

import argparse
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from data_scripts.parts.unsuitable import check_suitable
from data_scripts.parts.workers import add_workers, parallel_map
from elmoc.batches import buffered
from elmoc.errors import InputError, run_command
from elmoc.files.locks import locked
from elmoc.files.text import open_text, read_lines
from elmoc.files.writing import refuse_existing
from elmoc.progress import progress_bar
from elmoc.text.raw import sample_lines
from elmoc.tokenizer import (
    BYTE_ORDER_MARK,
    SENTENCE_ENDS,
    looks_tokenised,
    looks_wrapped,
    sentence_splitter,
    tokenise_paragraph,
)

SAMPLE_CHARACTERS = 1_000_000
_BLOCK_CHARACTERS = 1 << 18
_LONGEST_PARAGRAPH = 1 << 20  # characters that are tokenised at once, which takes a hundred times their memory
_ANSWERS = {"auto": None, "yes": True, "no": False}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.tokenize",
        description="Raw text to one tokenised sentence a line; blank lines separate documents before and after. Text "
        "that is tokenised already passes through unchanged. Learns the language's abbreviations from the text.",
    )
    parser.add_argument("source", type=Path, metavar="IN", help="UTF-8 text, also .gz")
    parser.add_argument("target", type=Path, metavar="OUT", help="file to make, also .gz")
    parser.add_argument(
        "--tokenised",
        choices=_ANSWERS,
        default="auto",
        help="whether IN is tokenised already (auto: it is when more of its punctuation stands apart than touches a "
        "word)",
    )
    parser.add_argument(
        "--wrapped",
        choices=_ANSWERS,
        default="auto",
        help="whether the lines of raw text are wrapped paragraphs, to be joined (auto: they are when they are of a "
        "like width and most end in the middle of a sentence)",
    )
    add_workers(parser)
    options = vars(parser.parse_args(argv))
    for name in ("tokenised", "wrapped"):
        options[name] = _ANSWERS[options[name]]
    return run_command(lambda: tokenise_file(**options))


def tokenise_file(
    source: Path, target: Path, *, tokenised: bool | None = None, wrapped: bool | None = None, workers: int = 1
) -> None:
    """Tokenise `source` into `target`; `tokenised` and `wrapped` None are decided from the start of the file.

    Raises `InputError` when the target exists or is being written, or the source is missing, empty, broken, no UTF-8,
    or JSON lines.
    """
    started = time.perf_counter()
    words = sentences = 0
    with locked(target):
        refuse_existing(target)
        sample = sample_lines(source, SAMPLE_CHARACTERS)
        if not any(line.strip() for line in sample):
            raise InputError(f"{source} is empty, there is no text to tokenise: give another file")
        check_suitable([source])
        text = "\n".join(sample)
        tokenised = looks_tokenised(text) if tokenised is None else tokenised
        wrapped = looks_wrapped(sample) if wrapped is None else wrapped
        with closing(read_text(source)) as lines, open_text(target) as file:
            if tokenised:
                print(f"{source} is tokenised already: its lines stay as they are (--tokenised no tokenises them)")
                blocks: Iterable[list[str]] = ([line] for line in lines)
            else:
                print(f"{source} is raw text, {'wrapped: its lines are joined' if wrapped else 'not wrapped'}")
                split = sentence_splitter(text)
                paragraphs = buffered(_paragraphs(lines, wrapped), len, most=_BLOCK_CHARACTERS)
                done = parallel_map(lambda block: tokenise_paragraphs(block, split), paragraphs, workers)
                blocks = single_blank_lines(done)
            for block in blocks:
                for line in block:
                    file.write(f"{line}\n")
                    words += len(line.split())
                    sentences += not line.isspace() and bool(line)
    seconds = time.perf_counter() - started
    print(f"{target}: {words:,} words in {sentences:,} sentences ({words / seconds:,.0f} words/s)")


def read_text(source: Path) -> Generator[str, None, None]:
    """The lines of `source` without byte order marks, with a progress bar; a NUL character is an `InputError`."""
    lines = progress_bar(iterable=read_lines(source), desc="tokenising", unit="line", unit_scale=True)
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise InputError(f"{source}, line {number}: the text holds a NUL character: take it out of the text")
        yield line.replace(BYTE_ORDER_MARK, "")


def _paragraphs(lines: Iterable[str], wrapped: bool) -> Iterator[str]:
    """Lines, or the joined lines between blank lines, cut where they are very long; "" for every blank line."""
    waiting = ""
    for line in lines:
        text = line.strip()
        waiting += f" {text}"
        if text and wrapped and len(waiting) <= _LONGEST_PARAGRAPH:
            continue
        *parts, rest = _cut(waiting.strip())
        yield from parts
        waiting = rest if text and wrapped else ""
        if not waiting:
            yield from filter(None, [rest])
            yield from [] if text else [""]
    yield from filter(None, [waiting.strip()])


def _cut(paragraph: str) -> Iterator[str]:
    """Parts of at most `_LONGEST_PARAGRAPH`: each ends where a sentence seems to, else between words, else anywhere."""
    start = 0
    while len(paragraph) - start > _LONGEST_PARAGRAPH:
        limit = start + _LONGEST_PARAGRAPH
        sentence = max(paragraph.rfind(f"{mark} ", start, limit) for mark in SENTENCE_ENDS)
        end = sentence + 1 or paragraph.rfind(" ", start, limit) + 1 or limit
        yield paragraph[start:end]
        start = end
    yield paragraph[start:]


def tokenise_paragraphs(paragraphs: Sequence[str], split: Callable[[str], Sequence[str]]) -> list[str]:
    """The sentences of paragraphs, as lines; "" for one that is empty, where a document ends."""
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += [" ".join(words) for words in tokenise_paragraph(paragraph, split)] if paragraph else [""]
    return lines


def single_blank_lines(blocks: Iterable[list[str]]) -> Iterator[list[str]]:
    """The blocks with one blank line where there were several, and none at the start or end."""
    blank, started = False, False
    for block in blocks:
        kept: list[str] = []
        for line in block:
            if line:
                kept += ["", line] if blank and started else [line]
                blank, started = False, True
            else:
                blank = True
        yield kept


if __name__ == "__main__":
    sys.exit(main())
