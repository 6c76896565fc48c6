"""Sentences: what becomes an entry of a feature file, how a file of sentences is read,
and whether all of them can be entries.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import xxhash

from elmoc.errors import InputError, say, shortened
from elmoc.features.options import MOST_SENTENCES, MOST_WORDS, DumpOptions
from elmoc.text.documents import (
    AnySource,
    TextRange,
    check_tokenised,
    reader_of,
    rereadable,
    whole_files,
)
from elmoc.text.named_files import AnyPath, find_named_files
from elmoc.text.reader import as_text


@dataclass(frozen=True)
class Sentence:
    """A sentence of a feature file.

    tokens: its words.
    line: its text without white space around it, by which it is found again.
    document: the key of the document that it is a part of (`doc_key` in jsonlines).
    boundaries: whether its states have `<s>` and `</s>`, too, before and behind its
        words.
    begins: whether it is the first of its document.
    where: what errors call it, e.g. `novel.txt, line 3`.
    """

    tokens: Sequence[str]
    line: str
    document: str | None
    boundaries: bool
    begins: bool
    where: str

    @property
    def length(self) -> int:
        """The number of words that it has states of."""
        return len(self.tokens) + 2 * self.boundaries

    @property
    def content(self) -> bytes:
        """All that the hash of an input is made of."""
        parts = [self.line, *self.tokens, self.document or ""]
        return "\0".join(parts).encode() + b"\n"


@dataclass(frozen=True)
class SentenceInput:
    """The sentences of files, which can be read more than once: a tokenised sentence a
    line, its words split where `str.split` does, or documents that come divided into
    words.

    path: what was given.
    texts: its files.
    options: of the dump.
    """

    path: AnyPath
    texts: Sequence[TextRange]
    options: DumpOptions

    def __iter__(self) -> Iterator[Sentence]:
        return (each for each in self.lines() if not self.skips(each))

    def skips(self, sentence: Sentence) -> bool:
        """Whether a blank line, or a row without text, is no sentence. Those of
        documents with keys are numbered.
        """
        is_one = sentence.document is not None or sentence.tokens
        return self.options.documents and not is_one

    def lines(self) -> Iterator[Sentence]:
        """Yield all lines as sentences."""
        for text in self.texts:
            reader = reader_of(text.path)
            for document in reader.read(text):
                key = document.name if reader.has_keys else None
                lines = [""] if document.lines == () else document.lines
                for index, line in enumerate(lines):
                    yield Sentence(
                        tokens=line.split() if isinstance(line, str) else line,
                        line=as_text(line).strip(),
                        document=key,
                        boundaries=self.options.boundaries,
                        begins=index == 0,
                        where=f"{text.path}, {document.place(index)}",
                    )


@contextmanager
def opened_input(
    path: AnySource, options: DumpOptions, *, needs_documents: bool
) -> Iterator[SentenceInput]:
    """The sentences of a source of text (see `read_documents`).

    Args:
        path: of files of any kind; or `-`.
        options: of the dump.
        needs_documents: documents have to be named by keys.

    Raises:
        InputError: the source names no file, or one without keys where these are
            needed.
    """
    with rereadable(path, field=options.field) as source:
        texts = whole_files(find_named_files([source]), options.field)
        for text in texts:
            if needs_documents and not reader_of(text.path).has_keys:
                raise InputError(
                    f"{text.path} has no documents, which this layout needs: give JSON "
                    "lines with doc_key and sentences"
                )
        yield SentenceInput(source, texts, options)


class Survey(NamedTuple):
    """What is known of an input before it is dumped.

    sentences: its number of sentences.
    words: the number of words that they have states of.
    fingerprint: a hash of its content.
    """

    sentences: int
    words: int
    fingerprint: str


def survey(source: SentenceInput, *, found_by_words: bool, tell: bool) -> Survey:
    """Read all of an input once.

    Args:
        source: the input.
        found_by_words: whether sentences will be found by their words, so that words
            may not hold white space (which only words of documents can).
        tell: whether text that does not look tokenised is told of on standard error,
            and the number of lines that are left out is printed.

    Raises:
        InputError: an input without sentences; an empty sentence, unless allowed; an
            empty word; a sentence of more than `MOST_WORDS`; two documents with one key
            (`:` and `/` count as the same there, as for e2e-coref); columns in place of
            text.
    """
    check_tokenised(source.texts, tell=tell)
    digest = xxhash.xxh3_64()
    keys = set[str]()
    sentences = 0
    words = 0
    skipped = 0
    for sentence in source.lines():
        where = sentence.where
        if source.skips(sentence):
            skipped += 1
            continue
        if sentence.begins and sentence.document is not None:
            key = sentence.document.replace("/", ":")
            if key in keys:
                raise InputError(
                    f'{where}: the doc_key "{shortened(key)}" stands in a line before '
                    'it (":" and "/" count as the same): give each document its own'
                )
            keys.add(key)
        if not all(sentence.tokens):
            raise InputError(f"{where} has an empty word, which has no states")
        if found_by_words and sentence.line.split() != list(sentence.tokens):
            raise InputError(
                f"{where} has a word with white space in it, so that it cannot be "
                "found by its words: take the white space out, or choose another "
                "layout (--format), or --forget-sentences"
            )
        if not sentence.tokens and not source.options.allow_empty:
            raise InputError(
                f"{where} is empty: take it out; where it ends a document, leave it "
                "out by --documents; or write an array of no words by --allow-empty"
            )
        if len(sentence.tokens) > MOST_WORDS:
            raise InputError(
                f"{where} has {len(sentence.tokens):,} words, a sentence at most "
                f"{MOST_WORDS:,}: divide it"
            )
        digest.update(sentence.content)
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
    if skipped and tell:
        say(
            f"{source.path}: {skipped:,} blank lines, or rows without text, are no "
            "entries"
        )
    return Survey(sentences, words, digest.hexdigest())
