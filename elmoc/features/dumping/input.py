"""Sentence input: how a file of sentences, or standard input, is read, and what is counted before it is dumped."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
import xxhash

from elmoc.errors import InputError, is_utf8, reason, shortened
from elmoc.features.layouts.sentence import Sentence
from elmoc.files.text import read_lines
from elmoc.files.writing import temporary_path
from elmoc.text.raw import SAMPLE_WORDS, attached_marks, warn_of_raw_text

STANDARD_INPUT = "-"
_JSONLINES = (".jsonl", ".jsonlines")
_MOST_MARKS = 1 << 14
_SPOOL_BYTES = 1 << 20


class Line(NamedTuple):
    """A sentence as it was read."""

    sentence: Sentence
    begins: bool
    """Whether it is the first of a document."""
    number: int
    """That of its line in the file, from 1."""
    place: int | None = None
    """Which of the document's sentences it is, from 0, where the line has several."""

    @property
    def where(self) -> str:
        """What errors call it."""
        return f"line {self.number}" + ("" if self.place is None else f" sentences[{self.place}]")


class SentenceInput(Protocol):
    """Where sentences come from; can be read more than once."""

    name: str
    """What errors call it."""

    def __iter__(self) -> Iterator[Line]:
        """The sentences, in order; raises `InputError`."""
        ...


class TextInput:
    """Text: a tokenised sentence a line, its words split where `str.split` does; each is a document of its own.

    blank_lines_divide: a document goes on until a blank line.
    keep_blank: blank lines are sentences without words, where they divide documents too.
    """

    def __init__(
        self, path: Path | str, name: str | None = None, *, blank_lines_divide: bool = False, keep_blank: bool = True
    ) -> None:
        self.path, self.name = Path(path), name or str(path) or "."
        self._divide, self._keep = blank_lines_divide, keep_blank

    def __iter__(self) -> Iterator[Line]:
        begins = True
        for number, line in enumerate(_lines(self.path, self.name), 1):
            tokens = line.split()
            if tokens or self._keep or not self._divide:
                yield Line(Sentence(tokens, line.strip()), begins or not self._divide, number)
                begins = False
            begins = begins or not tokens


class _Document(msgspec.Struct):
    """A line of jsonlines; what else stands in it (speakers, clusters) is not read."""

    doc_key: str
    sentences: list[list[str]]


class JsonlinesInput:
    """JSON lines: a document each, with `doc_key` and `sentences`, which are lists of words (as e2e-coref reads)."""

    def __init__(self, path: Path | str, name: str | None = None) -> None:
        self.path, self.name = Path(path), name or str(path) or "."

    def __iter__(self) -> Iterator[Line]:
        decoder = msgspec.json.Decoder(_Document)
        for number, line in enumerate(_lines(self.path, self.name), 1):
            if not line.strip():
                continue
            document = self._document(decoder, line, number)
            for index, tokens in enumerate(document.sentences):
                sentence = Sentence(tokens, " ".join(tokens), document.doc_key)
                yield Line(sentence, index == 0, number, index)

    def _document(self, decoder: msgspec.json.Decoder[_Document], line: str, number: int) -> _Document:
        where = f"{self.name}, line {number}"
        try:
            document = decoder.decode(line)
        except RecursionError:
            raise InputError(f"{where} is nested too deeply: {_AS_JSONLINES}") from None
        except ValueError as error:  # also those of msgspec, and of text that is not UTF-8
            raise InputError(f"{where} cannot be read ({reason(error)}): {_AS_JSONLINES}") from None
        if not document.doc_key or not is_utf8(document.doc_key):
            raise InputError(
                f"{where}: doc_key is {'not valid UTF-8' if document.doc_key else 'empty'}: name the document"
            )
        if document.doc_key == "." or "\0" in document.doc_key:
            raise InputError(
                f"{where}: doc_key is {document.doc_key!r}, which no layout of documents can have: rename it"
            )
        if not document.sentences:
            raise InputError(f'{where}: the document "{shortened(document.doc_key)}" has no sentences: remove it')
        for index, tokens in enumerate(document.sentences):
            for position, word in enumerate(tokens):
                if not word or not is_utf8(word):
                    what = "not valid UTF-8" if word else "an empty word"
                    raise InputError(f"{where}: sentences[{index}][{position}] is {what}: correct it")
        return document


_AS_JSONLINES = 'write one document a line, such as {"doc_key": "a", "sentences": [["Two", "words"]]}'


def _lines(path: Path, name: str) -> Iterator[str]:
    """The lines of a file that errors call `name`."""
    try:
        yield from read_lines(path)
    except InputError as error:
        if not (said := str(error)).startswith(str(path)):
            raise
        raise InputError(f"{name}{said.removeprefix(str(path))}") from None


def is_jsonlines(path: Path | str) -> bool:
    """Whether a file holds documents, by its name: `.jsonl` or `.jsonlines`, compressed or not."""
    return str(path).removesuffix(".gz").endswith(_JSONLINES)


@contextmanager
def opened_input(
    path: Path | str,
    output: Path | str,
    *,
    documents: bool = False,
    blank_lines_divide: bool = False,
    keep_blank: bool = True,
) -> Iterator[SentenceInput]:
    """The sentences of a file, or of standard input for `-`, of which a copy is kept beside `output` meanwhile.

    Args:
        path: text, or documents as JSON lines (by its name, or when `documents` says so).
        output: what is made of it.
        documents: take it for JSON lines whatever its name.
        blank_lines_divide, keep_blank: see `TextInput`.
    """
    spooled = str(path) == STANDARD_INPUT
    name = "standard input" if spooled else str(path)
    with temporary_path(output, "input") if spooled else nullcontext(Path(path)) as file:
        if spooled:
            _spool(file)
        if documents or is_jsonlines(path):
            yield JsonlinesInput(file, name)
        else:
            yield TextInput(file, name, blank_lines_divide=blank_lines_divide, keep_blank=keep_blank)


def _spool(file: Path) -> None:
    if sys.stdin is None:
        raise InputError("standard input is closed: pipe the sentences in, or name a file")
    with open(file, "wb") as copy:
        while block := sys.stdin.buffer.read(_SPOOL_BYTES):
            copy.write(block)


@dataclass
class Survey:
    """What is known of an input before it is dumped.

    sentences, words: how many there are.
    fingerprint: a content hash of them.
    marks: sentences at which a document begins, each with the number of words before it: all of them, or of a large
        input some thousands, evenly spread.
    """

    sentences: int = 0
    words: int = 0
    fingerprint: str = ""
    marks: list[tuple[int, int]] = field(default_factory=list)

    def shares(self, count: int) -> list["Share"]:
        """The sentences cut into shares of whole documents, of about equally many words; raises `InputError`."""
        cuts = [(0, 0)]
        for share in range(1, count):
            wanted = self.words * share / count
            cuts.append(min(self.marks, key=lambda mark: abs(mark[1] - wanted)))
        cuts.append((self.sentences, self.words))
        pairs = list(pairwise(cuts))
        if any(stop[0] <= start[0] for start, stop in pairs):
            raise InputError(
                f"the sentences cannot be shared among {count} processes, whole documents each: use fewer processes"
            )
        return [Share(range(start[0], stop[0]), stop[1] - start[1]) for start, stop in pairs]


class Share(NamedTuple):
    """What one of several processes dumps."""

    sentences: range
    words: int


def survey(source: SentenceInput, *, allow_empty: bool, found_by_words: bool = False, warn: bool = True) -> Survey:
    """Read all of an input once; one without sentences is an `InputError`, and so are empty ones unless allowed.

    With `warn` there is a warning on standard error of text that does not look tokenised.
    Two documents with one key are an `InputError`, too. `:` and `/` count as the same there, as for e2e-coref. So are
    words with white space in them (which only documents can have) where sentences are to be found by their words.
    """
    found, digest, empty = Survey(), ContentDigest(), Shown()
    keys: dict[int, int] = {}
    stride, documents = 1, 0
    sampled = with_mark = 0
    for line in source:
        if line.begins:
            if line.sentence.document is not None:
                _require_new(line, keys, source.name)
            if documents % stride == 0:
                found.marks.append((found.sentences, found.words))
            documents += 1
            if len(found.marks) > _MOST_MARKS:
                found.marks, stride = found.marks[::2], 2 * stride
        if found_by_words and line.place is not None and not line.sentence.is_divided:
            raise InputError(
                f"{source.name}, {line.where} has a word with white space in it, so that it cannot be found by its "
                "words: take the white space out, or choose another layout (--format), or --forget-sentences"
            )
        if line.place is None and sampled < SAMPLE_WORDS:
            sampled += len(line.sentence.tokens)
            with_mark += attached_marks(line.sentence.tokens)
        digest.update(line)
        found.sentences += 1
        found.words += len(line.sentence.tokens)
        if not line.sentence.tokens:
            empty.add(line.where if not empty.count else line.where.removeprefix("line "))
    if warn:
        warn_of_raw_text(source.name, words=sampled, with_mark=with_mark)
    if not found.sentences:
        raise InputError(f"{source.name} has no lines: give a file with a sentence on each")
    if empty.count and not allow_empty:
        raise InputError(
            f"{source.name} has {empty.count:,} empty lines ({empty}): remove them, or write empty arrays for them "
            "with --allow-empty"
        )
    found.fingerprint = digest.hexdigest()
    return found


def _require_new(line: Line, keys: dict[int, int], name: str) -> None:
    """Raise an `InputError` when another document had the key; of each a hash is kept, and its line."""
    key = (line.sentence.document or "").replace("/", ":")
    other = keys.setdefault(xxhash.xxh3_64_intdigest(key.encode()), line.number)
    if other != line.number:
        raise InputError(
            f'{name}, line {line.number}: the doc_key "{shortened(key)}" is that of line {other} too (":" and "/" '
            "count as the same): give each document its own"
        )


class ContentDigest:
    """A hash of sentences and documents, one after the other."""

    def __init__(self) -> None:
        self._digest = xxhash.xxh3_64()

    def update(self, line: Line) -> None:
        """Add the next sentence."""
        sentence = line.sentence
        parts = (sentence.line, *sentence.tokens, sentence.document or "", "1" if line.begins else "")
        self._digest.update("\0".join(parts).encode() + b"\n")

    def hexdigest(self) -> str:
        """16 hexadecimal digits."""
        return self._digest.hexdigest()


class Shown:
    """A list of which a sentence shows the first few."""

    def __init__(self, most: int = 5) -> None:
        self.count = 0
        self._most = most
        self._first: list[str] = []

    def add(self, what: str) -> None:
        """Add the next."""
        self.count += 1
        if len(self._first) < self._most:
            self._first.append(what)

    def __str__(self) -> str:
        return ", ".join(self._first) + (", …" if self.count > self._most else "")
