"""Raw texts: a string to the words of its sentences, and where each word stands in it.

A text is tokenised as a file of it would be by `python -m data_scripts.tokenize`, but
that abbreviations are the common ones, and not learned.
"""

import html
import re
from collections.abc import Sequence

from elmoc.errors import InputError
from elmoc.text.scripts import unspaced_problem
from elmoc.text.tokenizer import (
    ENTITY,
    STRAIGHT,
    looks_wrapped,
    sentence_splitter,
    tokenise_paragraph,
)

_SPLIT = sentence_splitter("")
_BLANK_LINES = re.compile(r"\n\s*\n")
# A low quotation mark becomes an apostrophe, or the comma for which it was written.
_LOW_QUOTE = "‚"
# Two of one of these become one `"`.
_DOUBLED = ("''", "``")


def tokenise_text(
    text: str, keep: Sequence[re.Pattern[str]] = (), *, name: str = "the text"
) -> list[list[str]]:
    """The sentences of a raw text, as words.

    Args:
        text: of any number of paragraphs.
        keep: see `tokenise_sentence`.
        name: of the text, in errors.

    Raises:
        InputError: spaces do not divide it into words.
    """
    problem = unspaced_problem(text)
    if problem:
        raise InputError(f"{name} {problem}, and give its words to `embed`")
    lines = text.splitlines()
    paragraphs = _BLANK_LINES.split(text) if looks_wrapped(lines) else lines
    sentences: list[list[str]] = []
    for paragraph in paragraphs:
        sentences += tokenise_paragraph(paragraph, _SPLIT, keep)
    return sentences


def word_offsets(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Where each word of a tokenised text begins and ends in it, in characters.

    Args:
        text: raw.
        words: of all its sentences, from `tokenise_text`.

    Raises:
        ValueError: they are words of another text.
    """
    characters = _plain_characters(text)
    offsets = []
    place = 0
    for word in words:
        end = None
        while end is None:
            if place == len(characters):
                raise ValueError(f"{word!r} does not stand where it should")
            first = place
            end = _end_of(word, characters, first)
            # What stands between two words, such as a space, is in neither.
            place += 1
        place = end
        offsets.append((characters[first][1], characters[end - 1][2]))
    return offsets


# A character of a plain text, and where that which it was made of begins and ends.
_Character = tuple[str, int, int]


def _plain_characters(text: str) -> list[_Character]:
    """The characters that the tokenizer sees, without those that it leaves out."""
    characters = [(each, place, place + 1) for place, each in enumerate(text)]
    # As often as the tokenizer replaces entities in a text and then in a sentence.
    for _ in range(4 if "&" in text else 0):
        plain = "".join(each for each, _, _ in characters)
        for entity in reversed(list(ENTITY.finditer(plain))):
            start = characters[entity.start()][1]
            end = characters[entity.end() - 1][2]
            own = [(each, start, end) for each in html.unescape(entity[0])]
            characters[entity.start() : entity.end()] = own
    return [each for each in characters if each[0].translate(STRAIGHT)]


def _end_of(word: str, characters: Sequence[_Character], place: int) -> int | None:
    """The place behind a word that begins at a place; None where it does not."""
    for letter in word:
        found = "".join(each for each, _, _ in characters[place : place + 2])
        straight = found.translate(STRAIGHT)
        if letter == straight[:1] or (letter == "," and found[:1] == _LOW_QUOTE):
            place += 1
        elif letter == '"' and straight in _DOUBLED:
            place += 2
        elif letter == "_" and found[:1].isspace():
            # A word that was kept has it for white space.
            while place < len(characters) and characters[place][0].isspace():
                place += 1
        else:
            return None
    return place
