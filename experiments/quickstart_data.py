"""Data of the quickstart: the script that made `quickstart/data` (see the README.md
there).

    python -m experiments.quickstart_data NOVELS… ENTITIES_TRAIN ENTITIES_DEV

NOVELS are tokenised novels (one sentence a line, a blank line between books),
ENTITIES_* LitBank's entity columns. Books that hold a sentence of the test passages are
left out, so that the encoder has not read what it is tested on.
"""

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

from nltk.tokenize.treebank import TreebankWordDetokenizer

from elmoc.files.text import read_lines
from elmoc.files.writing import atomic_path
from elmoc.text.documents import read_documents

# Words of the novels: some two minutes of training.
WORDS = 750_000
SENTENCES_A_PARAGRAPH = 4
TRAIN_BOOKS = 26
DEV_BOOKS = 4
TEST_BOOKS = 6
# Characters of a sentence that is in one book alone, at least.
TELLING_SENTENCE = 60
DATA = Path(__file__).parent.parent / "quickstart" / "data"


def detokenised(sentence: list[str]) -> str:
    """The sentence as running text; of straight quotes, every second one closes."""
    opened = False
    quoted = []
    for word in sentence:
        if word == '"':
            quoted.append("''" if opened else "``")
            opened = not opened
        else:
            quoted.append(word)
    return TreebankWordDetokenizer().detokenize(quoted)


def entity_books(path: str) -> Iterator[list[str]]:
    """The books of a file of entity columns: lines `word TAB innermost tag`, "" between
    sentences.
    """
    book: list[str] = []
    for line in read_lines(path):
        if line.startswith("-DOCSTART-"):
            if any(book):
                yield book
            book = []
        else:
            book.append("\t".join(line.split("\t")[:2]))
    yield book


def sentences_of(book: list[str]) -> set[str]:
    """The sentences of a book of entities, their words with blanks between them."""
    found = set()
    for rows in "\n".join(book).split("\n\n"):
        words = [row.split("\t")[0] for row in rows.split("\n")]
        found.add(" ".join(words))
    return found


def write(name: str, text: str) -> None:
    """Write a `.gz` file that is the same, byte for byte, whenever it is made."""
    with atomic_path(DATA / name) as partial:
        partial.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def main(arguments: list[str]) -> None:
    """Make the three entity files and the novels."""
    *novels, entities_train, entities_dev = arguments
    train = list(entity_books(entities_train))
    held_out = list(entity_books(entities_dev))
    splits = {
        "entities_train": train[:TRAIN_BOOKS],
        "entities_dev": held_out[:DEV_BOOKS],
        "entities_test": held_out[DEV_BOOKS : DEV_BOOKS + TEST_BOOKS],
    }
    for name, chosen in splits.items():
        books = ["\n".join(book).strip("\n") + "\n" for book in chosen]
        write(f"{name}.conll.gz", "\n".join(books))
    unseen: set[str] = set()
    for entities in held_out:
        unseen |= sentences_of(entities)
    unseen = {sentence for sentence in unseen if len(sentence) > TELLING_SENTENCE}
    texts = []
    words = 0
    for novel in novels:
        for document in read_documents(novel):
            book = [sentence for sentence in document.sentences() if sentence]
            length = sum(map(len, book))
            is_seen = any(" ".join(sentence) in unseen for sentence in book)
            if not book or is_seen or words + length > WORDS:
                continue
            words += length
            paragraphs = []
            for start in range(0, len(book), SENTENCES_A_PARAGRAPH):
                paragraph = book[start : start + SENTENCES_A_PARAGRAPH]
                paragraphs.append(" ".join(map(detokenised, paragraph)))
            texts.append("\n".join(paragraphs))
            print(f"{length:,} words: {' '.join(book[min(1, len(book) - 1)])[:80]}")
    write("novels.txt.gz", "\n\n".join(texts) + "\n")
    print(f"{len(texts)} books, {words:,} words")


if __name__ == "__main__":
    main(sys.argv[1:])
