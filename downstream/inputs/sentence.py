"""Sentences of task data: their words in the spelling of tokenised pretraining text.

Features and word vectors are looked up by the words that `make_sentence` gives. Brackets and quotes are respelled here
and nowhere else.
"""

from collections.abc import Iterable
from dataclasses import dataclass

# Spellings of the Penn Treebank, of OntoNotes and of typographers → that of `elmoc.tokenizer`.
PLAIN = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}",
    "``": '"', "''": '"', "`": "'", "“": '"', "”": '"', "„": '"', "‟": '"', "‘": "'", "’": "'", "‛": "'",
    "\\/": "/", "\\*": "*", "/.": ".", "/?": "?",
}  # fmt: skip


_INSIDE = str.maketrans({"’": "'", "‘": "'", "”": '"', "״": '"'})  # the last two in acronyms of Hebrew


@dataclass(frozen=True)
class Sentence:
    """The words of a sentence and where it begins in the task's data; no word holds white space."""

    words: tuple[str, ...]
    file: str
    line: int


def make_sentence(words: Iterable[str], *, file: object, line: int) -> Sentence:
    """The sentence of these words, each of which stays one word; it begins on `line` of `file`."""
    return Sentence(tuple(plain_word(word) for word in words), str(file), line)


def plain_word(word: str) -> str:
    """A word as tokenised pretraining text spells it.

    Features are made from text that is split on white space. Words of some data hold white space: each stretch of it
    becomes `_`, and so does an empty word.
    """
    word = "_".join(word.split()) or "_"
    if word in PLAIN:
        return PLAIN[word]
    if "\\" in word:
        word = word.replace("\\/", "/").replace("\\*", "*")
    word = word.translate(_INSIDE)
    return PLAIN.get(word, word)
