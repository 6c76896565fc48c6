"""Sentences: how a file of them is read, counted and divided, and whether it holds
tokenised sentences at all.
"""

import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

import msgspec
import xxhash
from msgspec import Meta

from elmoc.corpus import BEGIN, END
from elmoc.errors import InputError, reading, say, shortened
from elmoc.files import MOST_SENTENCES, MOST_WORDS, read_lines, unpacked_name
from elmoc.tokenizer import WITH_MARK

T = TypeVar("T")

# characters of each file by which it is judged, and by which it is called raw
SAMPLE_CHARACTERS = 10_000
_RAW_SAMPLE_CHARACTERS = 500_000
# Columns: pairs of lines that follow each other, at least (half as many where tabs
# divide three fields or more), the share of them that have the same number of fields,
# and of lines that end in a tag where blanks divide the fields.
_FEWEST_PAIRS = 4
_LIKE_PAIRS = 0.95
_TAGGED_LINES = 0.8
_TAG = re.compile(
    r"O|[BIESMLU]-\S+|[-_*]|\(?\S*\*\)*|\(?\d+\)?(\|\S+)?|-?\d+\.\d+|[A-Z]{1,5}\$?"
)
# Scripts without spaces. A match is about as much text in each of them: a character of
# Chinese or Japanese, a row of katakana (long words from abroad), three characters of
# Thai or Lao, five of Tibetan, Burmese or Khmer.
_WITHOUT_SPACES = re.compile(
    "[\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[\u30a0-\u30ff]+|[\u0e00-\u0eff]{1,3}"
    "|[\u0f00-\u109f\u1780-\u17ff]{1,5}"
)
# matches that a word has at most, on average
_LONGEST_WORD = 4
# text is called raw from this share of words on, where it is about a tenth; in
# tokenised text it is near nothing
_MANY_WITH_MARK = 0.01
# words with a mark that may be names (Yahoo!) in a text of any length
_FEW_WITH_MARK = 2
# words of an endless stream that are read before its sentences are sorted by length
# into batches
BUFFER_WORDS = 50_000


@dataclass(frozen=True)
class Sentence:
    """A sentence of a feature file.

    tokens: its words.
    line: its text without white space around it, by which it is found again; by default
        the words with one blank between them.
    document: the key of the document that it is a part of (`doc_key` in jsonlines).
    boundaries: whether its states have `<s>` and `</s>`, too, before and behind its
        words.
    begins: whether it is the first of its document.
    where: what errors call it, e.g. `line 3`.
    """

    tokens: Sequence[str]
    line: str = ""
    document: str | None = None
    boundaries: bool = False
    begins: bool = True
    where: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "line", (self.line or " ".join(self.tokens)).strip())

    @property
    def length(self) -> int:
        """How many words its states are of."""
        return len(self.tokens) + 2 * self.boundaries


class _Document(msgspec.Struct):
    """A line of jsonlines; what else stands in it (speakers, clusters) is not read. No
    name in HDF5 is `.`.
    """

    doc_key: Annotated[str, msgspec.Meta(pattern=r"^(?!\.$)[^\0]+$")]
    sentences: Annotated[
        list[list[Annotated[str, msgspec.Meta(min_length=1)]]],
        msgspec.Meta(min_length=1),
    ]


@dataclass(frozen=True)
class _StandardInput(os.PathLike[str]):
    """The path of a copy of standard input, which messages call by that name."""

    copy: str

    def __fspath__(self) -> str:
        return self.copy

    def __str__(self) -> str:
        return "standard input"


@dataclass(frozen=True)
class SentenceInput:
    """A file of sentences, which can be read more than once."""

    path: os.PathLike[str] | str
    documents: Annotated[
        bool,
        Meta(
            description="it holds JSON lines: a document each, with `doc_key` and "
            "`sentences`, lists of words (as e2e-coref reads). Else it "
            "is text: a tokenised sentence a line, its words split "
            "where `str.split` does"
        ),
    ] = False
    carry_state: Annotated[
        bool,
        Meta(
            description="a document of a text goes on until a blank line; else each "
            "line is a document of its own"
        ),
    ] = False
    allow_empty: Annotated[
        bool,
        Meta(
            description="blank lines are sentences without words, where they divide "
            "documents, too"
        ),
    ] = True
    boundaries: Annotated[
        bool, Meta(description="the states of `<s>` and `</s>` are to be written, too")
    ] = False

    def __iter__(self) -> Iterator[Sentence]:
        return self._of_documents() if self.documents else self._of_text()

    def _of_text(self) -> Iterator[Sentence]:
        begins = True
        for number, line in enumerate(read_lines(self.path), 1):
            tokens = line.split()
            if tokens or self.allow_empty or not self.carry_state:
                begins = begins or not self.carry_state
                where = f"line {number}"
                yield Sentence(
                    tokens,
                    line.strip(),
                    boundaries=self.boundaries,
                    begins=begins,
                    where=where,
                )
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
                yield Sentence(
                    tokens,
                    " ".join(tokens),
                    document.doc_key,
                    self.boundaries,
                    index == 0,
                    where,
                )


@contextmanager
def opened_input(
    path: os.PathLike[str] | str, *, documents: bool, **options: bool
) -> Iterator[SentenceInput]:
    """The sentences of a file, or for `-` of standard input, which is copied to a
    temporary file meanwhile.

    It holds documents where `documents` says so, or its name, `.jsonl` or `.jsonlines`,
    compressed or not; the other options go to `SentenceInput`.
    """
    documents = documents or unpacked_name(path).endswith((".jsonl", ".jsonlines"))
    with tempfile.TemporaryDirectory() as folder:
        if str(path) == "-":
            with open(Path(folder) / "copy", "wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            path = _StandardInput(copy.name)
        yield SentenceInput(path, documents, **options)


class Survey(NamedTuple):
    """What is known of an input before it is dumped; the fingerprint is a hash of its
    content.
    """

    sentences: int
    words: int
    fingerprint: str


def survey(source: SentenceInput, *, found_by_words: bool, warn: bool) -> Survey:
    """Read all of an input once; one without sentences is an `InputError`, and so are
    empty ones unless allowed.

    So are sentences of more than `MOST_WORDS`, two documents with one key (`:` and `/`
    count as the same there, as for e2e-coref), and words with white space in them
    (which only documents can have) where sentences are to be found by their words. Text
    that is JSON lines or columns is an `InputError`, too. With `warn` there is a
    warning on standard error of text that does not look tokenised.
    """
    if not source.documents:
        check_suitable(source.path, warn=warn)
    digest = xxhash.xxh3_64()
    keys = set[str]()
    sentences = words = 0
    for sentence in source:
        count = len(sentence.tokens)
        where = f"{source.path}, {sentence.where}"
        if sentence.begins and sentence.document is not None:
            key = sentence.document.replace("/", ":")
            if key in keys:
                raise InputError(
                    f'{where}: the doc_key "{shortened(key)}" stands in a line before it (":" and "/" count as the '
                    "same): give each document its own"
                )
            keys.add(key)
        if (
            found_by_words
            and source.documents
            and sentence.line.split() != list(sentence.tokens)
        ):
            raise InputError(
                f"{where} has a word with white space in it, so that it cannot be found by its words: take the white "
                "space out, or choose another layout (--format), or --forget-sentences"
            )
        if not count and not source.allow_empty:
            raise InputError(
                f"{where} is empty: remove it, or write an empty array: --allow-empty"
            )
        if count > MOST_WORDS:
            raise InputError(
                f"{where} has {count:,} words, a sentence at most {MOST_WORDS:,}: divide it"
            )
        parts = (
            sentence.line,
            *sentence.tokens,
            sentence.document or "",
            "1" if sentence.begins else "",
        )
        digest.update("\0".join(parts).encode() + b"\n")
        sentences = sentences + 1
        words = words + sentence.length
        if sentences > MOST_SENTENCES:
            raise InputError(
                f"{where}: a feature file has at most {MOST_SENTENCES:,} sentences: divide the text"
            )
    if not sentences:
        raise InputError(
            f"{source.path} has no lines: give a file with a sentence on each"
        )
    if warn and not source.documents:
        sample = " ".join(sample_lines(source.path, _RAW_SAMPLE_CHARACTERS)).split()
        warn_of_raw_text(source.path, Counter(sample).items())
    return Survey(sentences, words, digest.hexdigest())


def count_words(sentences: Sequence[Sentence]) -> int:
    """The number of words of sentences."""
    return sum(sentence.length for sentence in sentences)


def check_suitable(path: os.PathLike[str] | str, *, warn: bool = True) -> None:
    """Raise an `InputError` for JSON lines and for columns; with `warn`, warn on
    standard error of missing spaces.
    """
    lines = [line.strip() for line in sample_lines(path, SAMPLE_CHARACTERS)]
    rows = list(filter(None, lines))
    if rows and all(re.match(r'\{\s*"', line) for line in rows):
        raise InputError(
            f"{path} holds JSON lines: give the text in them, e.g. what `jq -r .text {path}` prints"
        )
    if has_columns(lines):
        raise InputError(
            f"{path} has columns: give the sentences alone, which `python -m downstream sentences` prints"
        )
    words = " ".join(rows).split()
    matches = _WITHOUT_SPACES.findall("".join(words))
    spaceless = 2 * sum(map(len, matches)) > sum(map(len, words))
    if (
        warn
        and spaceless
        and len(matches)
        > _LONGEST_WORD * sum(map(bool, map(_WITHOUT_SPACES.search, words)))
    ):
        say(
            f"warning: {path} looks like text without spaces between words: put them there first, by a tool for the "
            "language",
            file=sys.stderr,
        )


def has_columns(lines: Iterable[str]) -> bool:
    """Whether lines are rows of columns: a word and its tags each, blank lines between
    sentences, or a table.

    Comments (`#`) do not count. Rows that follow each other have the same number of
    fields, divided by tabs, or by blanks where nearly all end in a tag.
    """
    rows = [line for line in lines if not line.startswith("#")]
    for divided, tagged in ("\t", False), (None, True):
        counts = [len(row.split(divided)) if row else 0 for row in rows]
        pairs = [
            (one, two)
            for one, two in pairwise(counts)
            if max(one, two) > 1 and min(one, two) > 0
        ]
        alike = sum(one == two for one, two in pairs)
        tags = sum(_TAG.fullmatch(row.split()[-1]) is not None for row in rows if row)
        if (
            len(pairs)
            >= _FEWEST_PAIRS // (2 if divided and max(counts, default=0) > 2 else 1)
            and alike >= _LIKE_PAIRS * len(pairs)
            and (not tagged or tags >= _TAGGED_LINES * sum(map(bool, rows)))
        ):
            return True
    return False


def sample_lines(path: os.PathLike[str] | str, characters: int) -> list[str]:
    """The first lines of a text, up to this number of characters; a longer line is cut
    to it.
    """
    sample: list[str] = []
    found = 0
    for line in read_lines(path):
        sample.append(line[:characters])
        found += len(line)
        if found >= characters:
            break
    return sample


def warn_of_raw_text(
    name: os.PathLike[str] | str, words: Iterable[tuple[str, int]]
) -> None:
    """Say so on standard error where a text looks raw, as many of its words have a mark
    attached.

    Args:
        name: of the text.
        words: each with how many times it occurs.
    """
    total = with_mark = 0
    for word, times in words:
        if word not in (BEGIN, END):
            total += times
            with_mark += times * bool(WITH_MARK.fullmatch(word))
    if with_mark > max(_FEW_WITH_MARK, _MANY_WITH_MARK * total):
        say(
            f"warning: {with_mark / total:.1%} of the words of {name} end in a comma or another mark, as in text that "
            "is not tokenised: give what `python -m data_scripts.tokenize --tokenised no` makes of it",
            file=sys.stderr,
        )


def buffered(
    items: Iterable[T],
    size: Callable[[T], int],
    *,
    most: int = BUFFER_WORDS,
    may_begin: Callable[[T], bool] = lambda item: True,
) -> Iterator[list[T]]:
    """The items in lists whose sizes, e.g. in words, sum up to at least `most`, but for
    the last.

    A list begins with an item that `may_begin` one.
    """
    buffer: list[T] = []
    in_buffer = 0
    for item in items:
        if in_buffer >= most and may_begin(item):
            yield buffer
            buffer = []
            in_buffer = 0
        buffer.append(item)
        in_buffer += size(item)
    if buffer:
        yield buffer
