"""Sentences of task data: how are their words spelled, and where do they stand?

Features and word vectors are looked up by these words. Brackets and quotes are
respelled here and nowhere else.
"""

from collections.abc import Iterable
from dataclasses import dataclass

# Spellings of the Penn Treebank, of OntoNotes and of typographers → the spelling of
# `elmoc.text.tokenizer`.
_PLAIN_WORDS = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}",
    "``": '"', "''": '"', "`": "'", "“": '"', "”": '"', "„": '"', "‟": '"',
    "‘": "'", "’": "'", "‛": "'",
    "\\/": "/", "\\*": "*", "/.": ".", "/?": "?",
}  # fmt: skip
# Quotes inside of a word. Acronyms of Hebrew have the last two of them.
_PLAIN_CHARACTERS = str.maketrans({"’": "'", "‘": "'", "”": '"', "״": '"'})


@dataclass(frozen=True)
class TaskSentence:
    """The words of a sentence, and its place in the task's data.

    words: none of them holds white space.
    file: the file that it was read from.
    line: the line of the file on which it begins, from 1.
    """

    words: tuple[str, ...]
    file: str
    line: int


def make_sentence(words: Iterable[str], *, file: object, line: int) -> TaskSentence:
    """The sentence of these words, each of which stays one word."""
    return TaskSentence(tuple(plain_word(word) for word in words), str(file), line)


def plain_word(word: str) -> str:
    """A word as tokenised pretraining text spells it.

    Features are made from text that is split on white space. Where a word of task data
    holds white space, each stretch of it becomes `_`; so does an empty word.
    """
    word = "_".join(word.split()) or "_"
    if word in _PLAIN_WORDS:
        return _PLAIN_WORDS[word]
    word = word.replace("\\/", "/").replace("\\*", "*").translate(_PLAIN_CHARACTERS)
    # `’’` has become `''`, which stands for one quote.
    return _PLAIN_WORDS.get(word, word)
