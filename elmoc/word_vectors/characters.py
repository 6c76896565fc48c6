"""Characters: which row of character ids a character CNN reads for a word.

Every row is `begin-of-word, characters, end-of-word, padding …`, `most` ids long. Where the characters of a word do not
fit, its first `most - 2` count. `<s>` and `</s>`, and the names that the original tools have for them, are spelled as
one character of their own.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from elmoc.corpus import BEGIN, END
from elmoc.errors import InputError

UTF8, LEXICON = "utf-8", "lexicon"
SPELLINGS = (UTF8, LEXICON)
_NEEDED = ("<bow>", "<eow>", "<bos>", "<eos>", "<oov>", "<pad>")


class Spelling(ABC):
    """From words to the ids of their characters.

    begin_word, end_word, padding: their ids.
    most: ids of a row, at least 3.
    """

    begin_word: int
    end_word: int
    padding: int

    def __init__(self, most: int) -> None:
        self.most = most

    @abstractmethod
    def characters(self, word: str) -> Sequence[int]:
        """The ids of the characters of a word, at most `most - 2`."""

    def rows(self, spelled: Sequence[Sequence[int]], padding: int) -> np.ndarray:
        """int64 [n, T] for words given by their characters: as much of their rows as their longest needs.

        `padding` ids stand behind it, as far as there is room: a convolution of that width or less meets in them, or
        before, all that it meets in the whole rows.
        """
        longest = 2 + max(map(len, spelled), default=0)
        rows = np.full((len(spelled), min(self.most, longest + padding)), self.padding, dtype=np.int64)
        rows[:, 0] = self.begin_word
        for row, characters in zip(rows, spelled, strict=True):
            row[1 : len(characters) + 1] = list(characters)
            row[len(characters) + 1] = self.end_word
        return rows


class Utf8Spelling(Spelling):
    """The bytes of a word in UTF-8 (Peters et al. 2018; bilm-tf's `UnicodeCharsVocabulary`).

    Ids 0 to 255 are bytes, 256 and 257 begin and end a sentence.
    """

    SIZE = 261
    begin_word, end_word, padding = 258, 259, 260
    _SENTENCE: ClassVar = {BEGIN: (256,), "<S>": (256,), END: (257,), "</S>": (257,)}

    def characters(self, word: str) -> Sequence[int]:
        return self._SENTENCE.get(word) or word.encode("utf-8", "ignore")[: self.most - 2]


class LexiconSpelling(Spelling):
    """The characters of a word by their ids in a lexicon, as ELMoForManyLangs has it.

    What that calls `<eow>` stands before a word, and `<bow>` behind it: its code exchanges the two, in training, too.
    Raises `InputError` where the lexicon lacks one of the ids that every row has.
    """

    def __init__(self, most: int, ids: Mapping[str, int]) -> None:
        super().__init__(most)
        if missing := [name for name in _NEEDED if name not in ids]:
            raise InputError(f"its lexicon of characters lacks {', '.join(missing)}")
        self.begin_word, self.end_word, self.padding = ids["<eow>"], ids["<bow>"], ids["<pad>"]
        self._ids, self._unknown = ids, ids["<oov>"]
        begin, end = (ids["<bos>"],), (ids["<eos>"],)
        self._sentence = {BEGIN: begin, "<bos>": begin, END: end, "<eos>": end}

    def characters(self, word: str) -> Sequence[int]:
        if word in self._sentence:
            return self._sentence[word]
        return [self._ids.get(character, self._unknown) for character in word[: self.most - 2]]


class WordIds:
    """The rows of whole words in a table of word vectors, as ELMoForManyLangs reads them beside characters.

    A word is looked up by its first `most - 2` characters; one that the lexicon lacks has the row of `<oov>`.
    """

    def __init__(self, most: int, ids: Mapping[str, int]) -> None:
        if "<oov>" not in ids:
            raise InputError("its lexicon of words lacks <oov>")
        self._most, self._ids, self._unknown = most, ids, ids["<oov>"]

    def rows(self, words: Sequence[str]) -> np.ndarray:
        """int64 [n]."""
        names = {BEGIN: "<bos>", END: "<eos>"}
        known = (names.get(word, word[: self._most - 2]) for word in words)
        return np.array([self._ids.get(word, self._unknown) for word in known], dtype=np.int64)
