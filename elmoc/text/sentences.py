"""Sentences: what becomes an entry of a feature file, and how a file of sentences is
read.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

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
    documents = documents or READERS["documents"].takes(path)
    with rereadable(path) as file:
        yield SentenceInput(file, documents, **options)


def count_words(sentences: Sequence[Sentence]) -> int:
    """The number of words that sentences have states of."""
    return sum(sentence.length for sentence in sentences)
