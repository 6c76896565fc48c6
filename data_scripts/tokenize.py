"""Tokenising: raw text becomes one tokenised sentence a line, with blank lines between documents.

Raw text: blank lines separate documents (or paragraphs) and stay document boundaries. Lines wrapped to a width are
joined first (decided once a file, see `looks_wrapped`), any other line is split into sentences on its own. Text that is
tokenised already passes through line for line. That is decided once a file, from its first megabyte: it is tokenised
when more of its punctuation stands apart than touches a word (`looks_tokenised`); --tokenised overrides it. The output
counts as tokenised, so running the command on it changes nothing. Byte order marks are left out wherever they stand.
"""

import argparse
import glob
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from data_scripts.parts.options import Options
from data_scripts.parts.unsuitable import check_suitable
from data_scripts.parts.workers import default_workers, parallel_map
from elmoc.batches import buffered
from elmoc.errors import InputError, run_command
from elmoc.files.locks import locked
from elmoc.files.text import open_text, read_lines, require_file
from elmoc.files.writing import refuse_existing
from elmoc.progress import progress_bar
from elmoc.settings import counted
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
_HYPHENS = ("-", "\u2010", "\xad")
"""Which divide a word at the end of a line: the usual sign, Unicode's own, and the soft hyphen."""
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
    parser.add_argument("--workers", type=int, default=default_workers(), metavar="N", help="processes (%(default)s)")
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
    Options(workers=workers)
    require_one_file(source)
    with locked(target):
        refuse_existing(target)
        _tokenise_file(source, target, tokenised=tokenised, wrapped=wrapped, workers=workers)


def require_one_file(source: Path) -> None:
    """Raise an `InputError` unless `source` is an ordinary file; of a folder or a glob it says how to make one."""
    if source.is_dir():
        pattern, quoted = f"{glob.escape(str(source))}/*", f"{shlex.quote(str(source))}/*"
    else:
        pattern, quoted = str(source), re.sub(r"[^*?[\]!]+", lambda text: shlex.quote(text[0]), str(source))
    if not source.is_file() and glob.has_magic(pattern) and (files := glob.glob(pattern)):
        inside = any(os.path.samefile(os.path.dirname(file) or ".", ".") for file in files)
        joined = "../raw.txt" if inside else "raw.txt"  # which must not be one of the files
        raise InputError(
            f"{source} is not one file, which is needed: join the files of text first, with blank lines between them "
            f"(`for file in {quoted}; do gzip -cdf < \"$file\"; printf '\\n\\n'; done > {joined}`)"
        )
    require_file(source)


def _tokenise_file(source: Path, target: Path, *, tokenised: bool | None, wrapped: bool | None, workers: int) -> None:
    sample = sample_lines(source, SAMPLE_CHARACTERS)
    if not any(line.strip() for line in sample):
        raise InputError(f"{source} is empty, there is no text to tokenise: give another file")
    check_suitable([(source, sample)], characters=SAMPLE_CHARACTERS)
    text = "\n".join(sample)
    if tokenised is None:
        tokenised = looks_tokenised(text)
    if tokenised:
        print(f"{source} is tokenised already: its lines stay as they are (--tokenised no tokenises them)")
    else:
        wrapped = looks_wrapped(sample) if wrapped is None else wrapped
        print(f"{source} is raw text, {'wrapped: its lines are joined' if wrapped else 'its lines are not wrapped'}")
    started = time.perf_counter()
    words = sentences = 0
    divided = DividedWords()
    with closing(progress(source)) as lines, open_text(target) as file:
        if tokenised:
            blocks: Iterable[list[str]] = ([line] for line in lines)
        else:
            whole = divided.count(lines) if wrapped else lines
            blocks = tokenise_blocks(whole, sentence_splitter(text), bool(wrapped), workers)
            blocks = single_blank_lines(blocks)
        for block in blocks:
            for line in block:
                file.write(f"{line}\n")
                words += len(line.split())
                sentences += not line.isspace() and bool(line)
    seconds = time.perf_counter() - started
    print(f"{target}: {words:,} words in {sentences:,} sentences ({words / seconds:,.0f} words/s)")
    if divided.lines:
        print(
            f"{source}: a hyphen ends {counted(divided.lines, 'line')} before one that begins with a small letter: "
            "words that are divided there stay two; put them together first if there are many"
        )


def progress(source: Path) -> Generator[str, None, None]:
    """The lines of `source` without byte order marks, with a progress bar.

    Raises `InputError` for a line with a NUL character.
    """
    lines = progress_bar(iterable=read_lines(source), desc="tokenising", unit="line", unit_scale=True)
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise InputError(f"{source}, line {number}: the text holds a NUL character: take it out of the text")
        yield line.replace(BYTE_ORDER_MARK, "")


class DividedWords:
    """Counts lines that end in a letter and a hyphen, where the next line begins with a small letter.

    A word may be divided there (`gele-`, `gentlich`), or have a hyphen of its own (`well-`, `known`).
    """

    def __init__(self) -> None:
        self.lines = 0

    def count(self, lines: Iterable[str]) -> Iterator[str]:
        """The same lines."""
        before = ""
        for line in lines:
            if before.endswith(_HYPHENS) and before[-2:-1].isalpha() and line.lstrip()[:1].islower():
                self.lines += 1
            yield line
            before = line.rstrip()


_split: Callable[[str], Sequence[str]] | None = None


def tokenise_blocks(
    lines: Iterable[str], split: Callable[[str], Sequence[str]], wrapped: bool, workers: int
) -> Iterator[list[str]]:
    """Yield the tokenised sentences of raw lines block by block, "" where a document ends."""
    global _split
    _split = split  # workers are forked with it
    blocks = buffered(_paragraphs(lines, wrapped), len, most=_BLOCK_CHARACTERS)
    yield from parallel_map(_tokenise_paragraphs, blocks, workers)


def _paragraphs(lines: Iterable[str], wrapped: bool) -> Iterator[str]:
    """Lines, or the joined lines between blank lines, cut where they are very long; "" for every blank line."""
    for paragraph in _joined(lines) if wrapped else lines:
        yield from _cut(paragraph) if paragraph.strip() else [""]


def _joined(lines: Iterable[str]) -> Iterator[str]:
    open_lines: list[str] = []
    characters = 0
    for line in lines:
        if line.strip():
            open_lines.append(line.strip())
            characters += len(line)
            if characters > _LONGEST_PARAGRAPH:
                *parts, rest = _cut(" ".join(open_lines))
                yield from parts
                open_lines, characters = [rest], len(rest)
            continue
        if open_lines:
            yield " ".join(open_lines)
            open_lines, characters = [], 0
        yield ""
    if open_lines:
        yield " ".join(open_lines)


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


def _tokenise_paragraphs(paragraphs: list[str]) -> list[str]:
    assert _split is not None
    lines: list[str] = []
    for paragraph in paragraphs:
        if paragraph:
            lines += [" ".join(words) for words in tokenise_paragraph(paragraph, _split)]
        else:
            lines.append("")
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
