"""Foreign files: what a file is that was given for word vectors and cannot be read as such, and what to do with it."""

import codecs
import re
import zlib

from elmoc.errors import InputError
from elmoc.files.text import open_binary
from elmoc.word_vectors.fasttext.file import MAGIC

NOT_SINGLE_SPACES = (
    "has words and numbers that are not separated by single spaces: put one space before each number, in place of "
    "tabs, commas or semicolons"
)
_HEAD_BYTES = 1 << 16
_STARTS = (
    (rb"PK\x03\x04", "is a zip archive: unpack it, and give the file in it"),
    (rb"\x1f\x8b", "is compressed with gzip: unpack it (gunzip), and give what that makes"),
    (rb"(?i)\s*<(!doctype )?html\b", "is a page of HTML: download the file itself"),
    (rb"version https://git-lfs", "is a pointer of Git LFS, in place of the file: download that (git lfs pull)"),
    (rb"\x80[\x02-\x05]", "is a pickle, as Gensim saves models: write its vectors as text, by save_word2vec_format"),
)
"""What files begin with, and what they are then."""
_WORD2VEC = re.compile(rb"\d{1,12} \d{1,6}\r?\n")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_NOT_ASCII = re.compile(rb"[\x00-\x08\x0e-\x1f\x80-\xff]")
_MANY_NOT_ASCII = 0.25
"""Of the bytes of binary numbers about half are no ASCII; of vectors as text, however damaged, only some words are."""
_NUMBER = rb"[+-]?(\d+(\.\d*)?(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|nan|inf)"
_WORD_AND_NUMBERS = re.compile(rb"^\S+( %b){2}" % _NUMBER, re.MULTILINE | re.IGNORECASE)
_OTHERWISE_SEPARATED = re.compile(rb"^[^\s,;]+([ \t,;]+%b){2}" % _NUMBER, re.MULTILINE | re.IGNORECASE)


def describe_foreign(path: str) -> str | None:
    """What a file is, by its first bytes, and what to do with it; None where that is not known, or is as its name says.

    The sentence goes on behind the name of the file.
    """
    try:
        with open_binary(path) as file:
            head = file.read(_HEAD_BYTES)
    except (InputError, OSError, EOFError, zlib.error):
        return None
    for start, what in _STARTS:
        if re.match(start, head):
            return what
    if head.startswith(MAGIC):
        if path.endswith(".bin"):
            return None
        return f"is a file of fastText: {'unpack it (gunzip), and ' * path.endswith('.gz')}let its name end in .bin"
    return _describe_text(path, head) if _is_text(head) else _describe_binary(path, head)


def _describe_text(path: str, head: bytes) -> str | None:
    if not _WORD_AND_NUMBERS.search(head):
        if _OTHERWISE_SEPARATED.search(head):
            return NOT_SINGLE_SPACES
        return "is text, but not of word vectors: give a file with a word and its numbers on each line"
    named = path.removesuffix(".gz").endswith((".vec", ".txt"))
    return None if named else "holds word vectors as text: let its name end in .vec"


def _describe_binary(path: str, head: bytes) -> str | None:
    if not _WORD2VEC.match(head) or len(_NOT_ASCII.findall(head)) < _MANY_NOT_ASCII * len(head):
        return None
    return (
        "is of word2vec's binary format: write it as text, in Python with Gensim by `KeyedVectors.load_word2vec_format("
        f"{path!r}, binary=True).save_word2vec_format('vectors.vec')`, and give that"
    )


def _is_text(head: bytes) -> bool:
    """Whether the first bytes of a file are UTF-8, the last character perhaps cut, without control characters."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return bool(head.strip()) and not _CONTROL.search(head)
