"""Uses of a word: where it stands in a text, and the vectors that an encoder gives it there."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from elmoc.errors import InputError, shortened
from elmoc.files.text import read_lines
from elmoc.model import ElmoC
from elmoc.progress import progress_bar

MOST_USES = 1000
CONTEXT_WORDS = 200
"""Read on each side of the word, where a line has more."""
SHOWN_WORDS = 12
"""Shown on each side of the word."""


@dataclass(frozen=True)
class Use:
    """One occurrence of a word: its sentence, and which of the tokens it is."""

    tokens: tuple[str, ...]
    position: int
    line: int = 0
    """Of the text, from 1."""

    def marked(self, most: int = SHOWN_WORDS) -> str:
        """The sentence with the word in brackets, shortened to `most` words on each side."""
        first, last = max(0, self.position - most), self.position + most + 1
        before, after = self.tokens[first : self.position], self.tokens[self.position + 1 : last]
        words = [*before, f"[{self.tokens[self.position]}]", *after]
        return " ".join(["…"] * (first > 0) + words + ["…"] * (last < len(self.tokens)))

    def around(self, most: int) -> tuple[str, ...]:
        """At most `most` words on each side."""
        first = max(0, self.position - most)
        return self.tokens[first : self.position] + self.tokens[self.position + 1 : self.position + 1 + most]


@dataclass(frozen=True)
class FoundUses:
    """The uses of a word in a text.

    uses: all, or a sample that is the same each time, in their order; one for sentences that are there several times.
    count: how many there are.
    """

    uses: list[Use]
    count: int

    def describe(self, word: str, corpus: Path | str) -> str:
        """Their number as a sentence."""
        which = f", of which {len(self.uses):,} are read" if len(self.uses) < self.count else ""
        return f"{corpus} has {self.count:,} uses of {shortened(word)!r}{which}"


def find_uses(corpus: Path | str, word: str, *, most: int = MOST_USES, ignore_case: bool = False) -> FoundUses:
    """The uses of a word in a text of one tokenised sentence a line, plain or `.gz`, in memory bounded by `most`.

    Raises `InputError` when there are none.
    """
    check_word(word)
    generator, count, kept = random.Random(0), 0, list[Use]()
    for use in _uses(corpus, word, ignore_case):
        count += 1
        if len(kept) < most:
            kept.append(use)
        elif (place := generator.randrange(count)) < most:  # each use is kept with the same probability
            kept[place] = use
    if not kept:
        advice = "" if ignore_case else ", or --ignore-case"
        raise InputError(
            f"{corpus} has no token {shortened(word)!r}: choose a word of the text, written as there{advice}"
        )
    distinct = {(use.tokens, use.position): use for use in sorted(kept, key=lambda use: -use.line)}
    return FoundUses(sorted(distinct.values(), key=lambda use: (use.line, use.position)), count)


def check_word(word: str) -> None:
    """Raise an `InputError` unless it is one token."""
    if word.split() != [word]:
        raise InputError(f"--word takes one word without blanks, not {shortened(word)!r}")


def positions(tokens: Sequence[str], word: str, ignore_case: bool) -> list[int]:
    """Where a word stands among tokens."""
    if ignore_case:
        word, tokens = word.casefold(), [token.casefold() for token in tokens]
    return [position for position, token in enumerate(tokens) if token == word]


def _uses(corpus: Path | str, word: str, ignore_case: bool) -> Iterator[Use]:
    for number, line in enumerate(read_lines(corpus), 1):
        if word in line or ignore_case:  # most lines are passed over without being split
            tokens = line.split()
            for position in positions(tokens, word, ignore_case):
                first = max(0, position - CONTEXT_WORDS)
                yield Use(tuple(tokens[first : position + CONTEXT_WORDS + 1]), position - first, number)


def use_vectors(elmo: ElmoC, uses: Sequence[Use], layer: str) -> np.ndarray:
    """float32 [n, 2P]: the vector of each use, each in its sentence.

    `layer` is `average`, `top`, or a number from 0; raises `InputError` for another.
    """
    chosen = _layers(layer, elmo.layers)
    vectors = np.empty((len(uses), elmo.width), dtype=np.float32)
    words = sum(len(use.tokens) for use in uses)
    with progress_bar(total=words, unit=" words", unit_scale=True, desc="encoding", leave=False, delay=2) as progress:
        sentences = (use.tokens for use in uses)
        for row, (use, states) in enumerate(zip(uses, elmo.embed_sentences(sentences), strict=True)):
            state: Tensor = states[chosen, use.position].mean(0)  # [L', 2P] → [2P]
            vectors[row] = state.numpy()
            progress.update(len(use.tokens))
    return vectors


def _layers(layer: str, count: int) -> list[int]:
    """The layers whose mean `layer` stands for, of `count`."""
    if layer == "average":
        return list(range(count))
    names = [str(number) for number in range(count)]
    if layer != "top" and layer not in names:
        raise InputError(f"--layer takes average, top or a number from 0 to {count - 1}, not {shortened(layer)!r}")
    return [count - 1 if layer == "top" else names.index(layer)]
