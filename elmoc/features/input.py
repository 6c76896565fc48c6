"""Sentence input: how a file of sentences, or standard input, is read, and what is counted before it is dumped."""

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import xxhash

from elmoc.errors import InputError, reading, shortened
from elmoc.features.layouts.interface import Sentence
from elmoc.files.text import read_lines
from elmoc.text.named_files import sample_lines, warn_of_raw_text


class Line(NamedTuple):
    """A sentence as it was read.

    begins: whether it is the first of a document.
    number: that of its line in the file, from 1.
    place: which of the document's sentences it is, from 0, where the line has several.
    """

    sentence: Sentence
    begins: bool
    number: int
    place: int | None = None

    @property
    def where(self) -> str:
        """What errors call it."""
        return f"line {self.number}" + ("" if self.place is None else f" sentences[{self.place}]")


class _Document(msgspec.Struct):
    """A line of jsonlines; what else stands in it (speakers, clusters) is not read. No name in HDF5 is `.`."""

    doc_key: Annotated[str, msgspec.Meta(pattern=r"^(?!\.$)[^\0]+$")]
    sentences: Annotated[list[list[Annotated[str, msgspec.Meta(min_length=1)]]], msgspec.Meta(min_length=1)]


@dataclass(frozen=True)
class SentenceInput:
    """A file of sentences, which can be read more than once.

    documents: it holds JSON lines: a document each, with `doc_key` and `sentences`, lists of words (as e2e-coref
        reads). Else it is text: a tokenised sentence a line, its words split where `str.split` does.
    blank_lines_divide: a document of a text goes on until a blank line; else each line is a document of its own.
    keep_blank: blank lines are sentences without words, where they divide documents too.
    """

    path: Path | str
    documents: bool = False
    blank_lines_divide: bool = False
    keep_blank: bool = True

    def __iter__(self) -> Iterator[Line]:
        return self._of_documents() if self.documents else self._of_text()

    def _of_text(self) -> Iterator[Line]:
        begins = True
        for number, line in enumerate(read_lines(self.path), 1):
            tokens = line.split()
            if tokens or self.keep_blank or not self.blank_lines_divide:
                yield Line(Sentence(tokens, line.strip()), begins or not self.blank_lines_divide, number)
                begins = False
            begins = begins or not tokens

    def _of_documents(self) -> Iterator[Line]:
        decoder = msgspec.json.Decoder(_Document)
        for number, line in enumerate(read_lines(self.path), 1):
            if not line.strip():
                continue
            with reading(f"{self.path}, line {number}"):
                document = decoder.decode(line)
            for index, tokens in enumerate(document.sentences):
                yield Line(Sentence(tokens, " ".join(tokens), document.doc_key), index == 0, number, index)


@contextmanager
def opened_input(path: Path | str, *, documents: bool, carry_state: bool, allow_empty: bool) -> Iterator[SentenceInput]:
    """The sentences of a file, or of standard input for `-`, of which a temporary copy is kept meanwhile.

    Args:
        path: text, or documents as JSON lines (`.jsonl` or `.jsonlines`, compressed or not).
        documents: take it for JSON lines whatever its name.
        carry_state: blank lines of a text end a document.
        allow_empty: blank lines are sentences without words in any case.
    """
    documents = documents or str(path).removesuffix(".gz").endswith((".jsonl", ".jsonlines"))
    with tempfile.TemporaryDirectory() as folder:
        if str(path) == "-":
            path = Path(folder) / "standard input"
            with open(path, "wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
        yield SentenceInput(path, documents, blank_lines_divide=carry_state, keep_blank=allow_empty)


class Survey(NamedTuple):
    """What is known of an input before it is dumped; the fingerprint is a hash of its content."""

    sentences: int
    words: int
    fingerprint: str


def survey(source: SentenceInput, *, allow_empty: bool, found_by_words: bool, warn: bool) -> Survey:
    """Read all of an input once; one without sentences is an `InputError`, and so are empty ones unless allowed.

    So are two documents with one key (`:` and `/` count as the same there, as for e2e-coref), and words with white
    space in them (which only documents can have) where sentences are to be found by their words. With `warn` there is
    a warning on standard error of text that does not look tokenised.
    """
    digest, keys = xxhash.xxh3_64(), set[str]()
    sentences = words = 0
    for line in source:
        sentence = line.sentence
        if line.begins and sentence.document is not None:
            key = sentence.document.replace("/", ":")
            if key in keys:
                raise InputError(
                    f'{source.path}, line {line.number}: the doc_key "{shortened(key)}" is that of a line before it '
                    '(":" and "/" count as the same): give each document its own'
                )
            keys.add(key)
        if found_by_words and source.documents and not sentence.is_divided:
            raise InputError(
                f"{source.path}, {line.where} has a word with white space in it, so that it cannot be found by its "
                "words: take the white space out, or choose another layout (--format), or --forget-sentences"
            )
        if not sentence.tokens and not allow_empty:
            raise InputError(f"{source.path}, {line.where} is empty: remove it, or write an empty array: --allow-empty")
        parts = (sentence.line, *sentence.tokens, sentence.document or "", "1" if line.begins else "")
        digest.update("\0".join(parts).encode() + b"\n")
        sentences, words = sentences + 1, words + len(sentence.tokens)
    if not sentences:
        raise InputError(f"{source.path} has no lines: give a file with a sentence on each")
    if warn and not source.documents:
        warn_of_raw_text(source.path, Counter(" ".join(sample_lines(source.path, 500_000)).split()).items())
    return Survey(sentences, words, digest.hexdigest())
