"""Sentence input: how a file of sentences, or standard input, is read, counted, and divided into parts for a dump."""

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import xxhash

from elmoc.errors import InputError, reading, shortened
from elmoc.features.layouts.interface import Sentence
from elmoc.files import MOST_SENTENCES, MOST_WORDS, read_lines
from elmoc.text.suitable import check_suitable, sample_lines, warn_of_raw_text

# characters by which text is judged to be raw
_SAMPLE_CHARACTERS = 500_000


class _Document(msgspec.Struct):
    """A line of jsonlines; what else stands in it (speakers, clusters) is not read. No name in HDF5 is `.`."""

    doc_key: Annotated[str, msgspec.Meta(pattern=r"^(?!\.$)[^\0]+$")]
    sentences: Annotated[list[list[Annotated[str, msgspec.Meta(min_length=1)]]], msgspec.Meta(min_length=1)]


@dataclass(frozen=True)
class SentenceInput:
    """A file of sentences, which can be read more than once.

    documents: it holds JSON lines: a document each, with `doc_key` and `sentences`, lists of words (as e2e-coref
        reads). Else it is text: a tokenised sentence a line, its words split where `str.split` does.
    carry_state: a document of a text goes on until a blank line; else each line is a document of its own.
    allow_empty: blank lines are sentences without words, where they divide documents, too.
    boundaries: the states of `<s>` and `</s>` are to be written, too.
    """

    path: Path | str
    documents: bool = False
    carry_state: bool = False
    allow_empty: bool = True
    boundaries: bool = False

    def __iter__(self) -> Iterator[Sentence]:
        return self._of_documents() if self.documents else self._of_text()

    def _of_text(self) -> Iterator[Sentence]:
        begins = True
        for number, line in enumerate(read_lines(self.path), 1):
            tokens = line.split()
            if tokens or self.allow_empty or not self.carry_state:
                begins = begins or not self.carry_state
                where = f"line {number}"
                yield Sentence(tokens, line.strip(), boundaries=self.boundaries, begins=begins, where=where)
                begins = False
            begins = begins or not tokens

    def _of_documents(self) -> Iterator[Sentence]:
        decoder = msgspec.json.Decoder(_Document)
        for number, line in enumerate(read_lines(self.path), 1):
            if not line.strip():
                continue
            with reading(f"{self.path}, line {number}"):
                document = decoder.decode(line)
            for index, tokens in enumerate(document.sentences):
                where = f"line {number} sentences[{index}]"
                yield Sentence(tokens, " ".join(tokens), document.doc_key, self.boundaries, index == 0, where)


@contextmanager
def opened_input(path: Path | str, *, documents: bool, **options: bool) -> Iterator[SentenceInput]:
    """The sentences of a file, or of standard input for `-`, of which a temporary copy is kept meanwhile.

    It holds documents where `documents` says so, or its name, `.jsonl` or `.jsonlines`, compressed or not; the other
    options are those of `SentenceInput`.
    """
    documents = documents or str(path).removesuffix(".gz").endswith((".jsonl", ".jsonlines"))
    with tempfile.TemporaryDirectory() as folder:
        if str(path) == "-":
            path = Path(folder) / "standard input"
            with open(path, "wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
        yield SentenceInput(path, documents, **options)


class Survey(NamedTuple):
    """What is known of an input before it is dumped; the fingerprint is a hash of its content."""

    sentences: int
    words: int
    fingerprint: str


def survey(source: SentenceInput, *, found_by_words: bool, warn: bool) -> Survey:
    """Read all of an input once; one without sentences is an `InputError`, and so are empty ones unless allowed.

    So are sentences of more than `MOST_WORDS`, two documents with one key (`:` and `/` count as the same there, as for
    e2e-coref), and words with white space in them (which only documents can have) where sentences are to be found by
    their words. Text that is JSON lines or columns is an `InputError`, too. With `warn` there is a warning on standard
    error of text that does not look tokenised.
    """
    if not source.documents:
        check_suitable(source.path, warn=warn)
    digest, keys = xxhash.xxh3_64(), set[str]()
    sentences = words = 0
    for sentence in source:
        count, where = len(sentence.tokens), f"{source.path}, {sentence.where}"
        if sentence.begins and sentence.document is not None:
            key = sentence.document.replace("/", ":")
            if key in keys:
                raise InputError(
                    f'{where}: the doc_key "{shortened(key)}" is that of a line before it (":" and "/" count as the '
                    "same): give each document its own"
                )
            keys.add(key)
        if found_by_words and source.documents and sentence.line.split() != list(sentence.tokens):
            raise InputError(
                f"{where} has a word with white space in it, so that it cannot be found by its words: take the white "
                "space out, or choose another layout (--format), or --forget-sentences"
            )
        if not count and not source.allow_empty:
            raise InputError(f"{where} is empty: remove it, or write an empty array: --allow-empty")
        if count > MOST_WORDS:
            raise InputError(f"{where} has {count:,} words, a sentence at most {MOST_WORDS:,}: divide it")
        parts = (sentence.line, *sentence.tokens, sentence.document or "", "1" if sentence.begins else "")
        digest.update("\0".join(parts).encode() + b"\n")
        sentences, words = sentences + 1, words + sentence.length
        if sentences > MOST_SENTENCES:
            raise InputError(f"{where}: a feature file has at most {MOST_SENTENCES:,} sentences: divide the text")
    if not sentences:
        raise InputError(f"{source.path} has no lines: give a file with a sentence on each")
    if warn and not source.documents:
        sample = " ".join(sample_lines(source.path, _SAMPLE_CHARACTERS)).split()
        warn_of_raw_text(source.path, Counter(sample).items())
    return Survey(sentences, words, digest.hexdigest())


def count_words(sentences: Sequence[Sentence]) -> int:
    """The number of words of sentences."""
    return sum(sentence.length for sentence in sentences)
