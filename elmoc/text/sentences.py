"""Sentences: what becomes an entry of a feature file, how a file of sentences is read,
and whether all of them can be entries.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import xxhash

from elmoc.errors import InputError, shortened
from elmoc.features.options import MOST_SENTENCES, MOST_WORDS
from elmoc.text.documents import READERS, TextRange, read_documents
from elmoc.text.named_files import AnyPath, rereadable


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
        line = self.line or " ".join(self.tokens)
        object.__setattr__(self, "line", line.strip())

    @property
    def length(self) -> int:
        """The number of words that it has states of."""
        return len(self.tokens) + 2 * self.boundaries


@dataclass(frozen=True)
class SentenceInput:
    """A file of sentences, which can be read more than once.

    path: of the file; or a copy of standard input.
    documents: it holds documents as JSON lines (`JsonDocuments`). Else it is text: a
        tokenised sentence a line, its words split where `str.split` does.
    carry_state: a document of a text goes on until a blank line; else each line is a
        document of its own.
    allow_empty: blank lines are sentences without words, where they divide documents,
        too.
    boundaries: the states of `<s>` and `</s>` are to be written, too.
    """

    path: AnyPath
    documents: bool = False
    carry_state: bool = False
    allow_empty: bool = True
    boundaries: bool = False

    def __iter__(self) -> Iterator[Sentence]:
        kind = "documents" if self.documents else "text"
        for document in read_documents(TextRange(self.path), kind=kind):
            begins = True
            key = document.name if document.tokenised else None
            for index, line in enumerate(document.lines):
                where = f"line {document.line} sentences[{index}]"
                tokens = line
                if isinstance(line, str):
                    where = f"line {document.line + index}"
                    tokens = line.split()
                    begins = begins or not self.carry_state
                # Without carried state a blank line is an entry of its own, which the
                # survey refuses unless empty ones are allowed.
                if tokens or key or self.allow_empty or not self.carry_state:
                    text = line if isinstance(line, str) else ""
                    yield Sentence(tokens, text, key, self.boundaries, begins, where)
                    begins = False


@contextmanager
def opened_input(
    path: AnyPath, *, documents: bool, **options: bool
) -> Iterator[SentenceInput]:
    """The sentences of a file, or for `-` of standard input.

    Args:
        path: of the file. It holds documents where its name says so.
        documents: it holds documents, whatever its name is.
        options: the others of `SentenceInput`.
    """
    with rereadable(path) as file:
        yield SentenceInput(
            file, documents or READERS["documents"].takes(path), **options
        )


def count_words(sentences: Sequence[Sentence]) -> int:
    """The number of words that sentences have states of."""
    return sum(sentence.length for sentence in sentences)


class Survey(NamedTuple):
    """What is known of an input before it is dumped.

    sentences: its number of sentences.
    words: the number of words that they have states of.
    fingerprint: a hash of its content.
    """

    sentences: int
    words: int
    fingerprint: str


def survey(source: SentenceInput, *, found_by_words: bool, warn: bool) -> Survey:
    """Read all of an input once.

    Args:
        source: the input.
        found_by_words: whether sentences will be found by their words, so that words
            may not hold white space (which only words of documents can).
        warn: whether text that does not look tokenised is told of on standard error.

    Raises:
        InputError: an input without sentences; an empty sentence, unless allowed; a
            sentence of more than `MOST_WORDS`; two documents with one key (`:` and `/`
            count as the same there, as for e2e-coref); JSON lines or columns in place
            of text.
    """
    if not source.documents:
        READERS["text"].check(source.path, warn=warn)
    digest = xxhash.xxh3_64()
    keys = set[str]()
    sentences = 0
    words = 0
    for sentence in source:
        where = f"{source.path}, {sentence.where}"
        if sentence.begins and sentence.document is not None:
            key = sentence.document.replace("/", ":")
            if key in keys:
                raise InputError(
                    f'{where}: the doc_key "{shortened(key)}" stands in a line before '
                    'it (":" and "/" count as the same): give each document its own'
                )
            keys.add(key)
        tokens = list(sentence.tokens)
        divided_otherwise = source.documents and sentence.line.split() != tokens
        if found_by_words and divided_otherwise:
            raise InputError(
                f"{where} has a word with white space in it, so that it cannot be "
                "found by its words: take the white space out, or choose another "
                "layout (--format), or --forget-sentences"
            )
        if not tokens and not source.allow_empty:
            raise InputError(
                f"{where} is empty: remove it, or write an empty array: --allow-empty"
            )
        if len(tokens) > MOST_WORDS:
            raise InputError(
                f"{where} has {len(tokens):,} words, a sentence at most "
                f"{MOST_WORDS:,}: divide it"
            )
        begins = "1" if sentence.begins else ""
        parts = [sentence.line, *tokens, sentence.document or "", begins]
        digest.update("\0".join(parts).encode() + b"\n")
        sentences += 1
        words += sentence.length
        if sentences > MOST_SENTENCES:
            raise InputError(
                f"{where}: a feature file has at most {MOST_SENTENCES:,} sentences: "
                "divide the text"
            )
    if not sentences:
        raise InputError(
            f"{source.path} has no lines: give a file with a sentence on each"
        )
    return Survey(sentences, words, digest.hexdigest())
