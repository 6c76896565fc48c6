"""Raw texts: a string to the words of its sentences, and where each word stands in it.

A text is tokenised as a file of it would be by `python -m data_scripts.tokenize`, but
that abbreviations are the common ones, and not learned.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from elmoc.errors import InputError
from elmoc.text.scripts import unspaced_problem
from elmoc.text.tokenizer import (
    BYTE_ORDER_MARK,
    ENTITY,
    KEPT,
    STRAIGHT,
    character_of,
    looks_wrapped,
    sentence_splitter,
    tokenise_paragraph,
)

_SPLIT = sentence_splitter("")
_BLANK_LINES = re.compile(r"\n\s*\n")
# A low quotation mark becomes an apostrophe, or the comma for which it was written.
_LOW_QUOTE = "‚"
# Two of one of these become one `"`.
_DOUBLED = ("'", "`")


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
    text = text.replace(BYTE_ORDER_MARK, "")
    # Lines of a file end in nothing else, either.
    lines = text.split("\n")
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
        offsets.append((characters[first].start, characters[end - 1].end))
    return offsets


class _Character(NamedTuple):
    """A character without entities, and where that which it was made of begins and
    ends in the text.
    """

    raw: str
    start: int
    end: int

    @property
    def straight(self) -> str:
        """As the tokenizer writes it in most words; "" where it leaves it out."""
        return "" if self.raw == KEPT[-1] else self.raw.translate(STRAIGHT)


def _plain_characters(text: str) -> list[_Character]:
    """The characters of a text in which entities are replaced."""
    characters = [_Character(each, place, place + 1) for place, each in enumerate(text)]
    # As often as the tokenizer replaces entities in a text and then in a sentence.
    for _ in range(4 if "&" in text else 0):
        plain = "".join(each.raw for each in characters)
        replaced: list[_Character] = []
        behind = 0
        for entity in ENTITY.finditer(plain):
            found = character_of(entity)
            if found != entity[0]:
                replaced += characters[behind : entity.start()]
                behind = entity.end()
                start = characters[entity.start()].start
                end = characters[behind - 1].end
                replaced += [_Character(each, start, end) for each in found]
        characters = replaced + characters[behind:]
    return characters


def _end_of(word: str, characters: Sequence[_Character], first: int) -> int | None:
    """The place behind a word that begins at a place; None where it does not.

    A word that was kept has its characters as they are in the text, but `_` for white
    space.
    """
    place = first
    for letter in word:
        if place > first:
            place = _next_seen(characters, place, letter)
        if place == len(characters):
            return None
        raw = characters[place].raw
        straight = characters[place].straight
        if letter in (raw, straight) or (letter == "," and raw == _LOW_QUOTE):
            place += 1
        elif letter == '"' and straight in _DOUBLED:
            second = _next_seen(characters, place + 1)
            if second == len(characters) or characters[second].straight != straight:
                return None
            place = second + 1
        elif letter == "_" and place > first and raw.isspace():
            while place < len(characters) and characters[place].raw.isspace():
                place += 1
        else:
            return None
    return place


def _next_seen(characters: Sequence[_Character], place: int, wanted: str = "") -> int:
    """The first place from this one on whose character the tokenizer does not leave
    out, or is the one that is wanted.
    """
    seen = (
        index
        for index in range(place, len(characters))
        if characters[index].straight or characters[index].raw == wanted
    )
    return next(seen, len(characters))
