"""Data of the quickstart: the script that made `quickstart/data` (see the README.md
there).

    python -m quickstart.make_data NOVELS… ENTITIES_TRAIN ENTITIES_DEV

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

WORDS = 750_000
SENTENCES_A_PARAGRAPH = 4
TRAIN_BOOKS = 26
DEV_BOOKS = 4
TEST_BOOKS = 6
DATA = Path(__file__).parent / "data"


def books(paths: list[str]) -> Iterator[list[list[str]]]:
    """The books of tokenised files, each a list of sentences."""
    book: list[list[str]] = []
    for path in paths:
        for line in [*read_lines(path), ""]:
            if line.strip():
                book.append(line.split())
            elif book:
                yield book
                book = []


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
    """The books of a file of entity columns: lines `word TAB outermost tag`, "" between
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
        write(
            f"{name}.conll.gz",
            "\n".join("\n".join(book).strip("\n") + "\n" for book in chosen),
        )
    unseen = {
        " ".join(row.split("\t")[0] for row in sentence.split("\n"))
        for book in held_out
        for sentence in "\n".join(book).split("\n\n")
    }
    unseen = {sentence for sentence in unseen if len(sentence) > 60}
    chosen_books = []
    words = 0
    for book in books(novels):
        length = sum(map(len, book))
        if words + length > WORDS or any(
            " ".join(sentence) in unseen for sentence in book
        ):
            continue
        words += length
        paragraphs = [
            book[start : start + SENTENCES_A_PARAGRAPH]
            for start in range(0, len(book), SENTENCES_A_PARAGRAPH)
        ]
        chosen_books.append(
            "\n".join(" ".join(map(detokenised, paragraph)) for paragraph in paragraphs)
        )
        print(
            f"{length:,} words: {' '.join(book[1] if len(book) > 1 else book[0])[:80]}"
        )
    write("novels.txt.gz", "\n\n".join(chosen_books) + "\n")
    print(f"{len(chosen_books)} books, {words:,} words")


if __name__ == "__main__":
    main(sys.argv[1:])
