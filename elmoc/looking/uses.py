"""Uses of a word: where it stands in a text, and the vectors that an encoder gives it there."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from elmoc.errors import InputError, shortened
from elmoc.files.text import read_lines
from elmoc.model import ElmoC
from elmoc.process import progress_bar

MOST_USES = 1000
# Words that are read, and words that are shown, on each side of the word.
CONTEXT_WORDS, SHOWN_WORDS = 200, 12


@dataclass(frozen=True)
class Use:
    """One occurrence of a word: its sentence, which of the tokens it is, and the line of the text, from 1."""

    tokens: tuple[str, ...]
    position: int
    line: int = 0

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
    """The uses of a word in a text."""

    uses: list[Use]  # all, or a sample that is the same each time, in their order; equal sentences count once
    count: int  # how many there are

    def describe(self, word: str, corpus: Path | str) -> str:
        """Their number as a sentence."""
        which = f", of which {len(self.uses):,} are read" if len(self.uses) < self.count else ""
        return f"{corpus} has {self.count:,} uses of {shortened(word)!r}{which}"


def find_uses(corpus: Path | str, word: str, *, most: int = MOST_USES, ignore_case: bool = False) -> FoundUses:
    """The uses of a word in a text of one tokenised sentence a line, plain or `.gz`, in memory bounded by `most`.

    Raises `InputError` when there are none.
    """
    generator, count, kept = random.Random(0), 0, list[Use]()
    for number, line in enumerate(read_lines(corpus), 1):
        tokens = line.split() if word in line or ignore_case else []  # most lines are passed over without being split
        for position in positions(tokens, word, ignore_case):
            count += 1
            first = max(0, position - CONTEXT_WORDS)
            use = Use(tuple(tokens[first : position + CONTEXT_WORDS + 1]), position - first, number)
            if len(kept) < most:
                kept.append(use)
            elif (place := generator.randrange(count)) < most:  # each use is kept with the same probability
                kept[place] = use
    if not kept:
        raise InputError(f"{corpus} has no token {shortened(word)!r}, as it is written here (see --ignore-case)")
    distinct = {(use.tokens, use.position): use for use in sorted(kept, key=lambda use: -use.line)}
    return FoundUses(sorted(distinct.values(), key=lambda use: (use.line, use.position)), count)


def positions(tokens: Sequence[str], word: str, ignore_case: bool) -> list[int]:
    """Where a word stands among tokens."""
    if ignore_case:
        word, tokens = word.casefold(), [token.casefold() for token in tokens]
    return [position for position, token in enumerate(tokens) if token == word]


def use_vectors(elmo: ElmoC, uses: Sequence[Use], layer: str) -> np.ndarray:
    """float32 [n, 2P]: the vector of each use in its sentence; `layer` is `average`, `top`, or a number from 0."""
    names = {str(number): [number] for number in range(elmo.layers)}
    names |= {"average": list(range(elmo.layers)), "top": [elmo.layers - 1]}
    if layer not in names:
        raise InputError(f"--layer takes {', '.join(names)}, not {shortened(layer)!r}")
    vectors = np.empty((len(uses), elmo.width), dtype=np.float32)
    words = sum(len(use.tokens) for use in uses)
    with progress_bar(total=words, unit=" words", unit_scale=True, desc="encoding", leave=False, delay=2) as progress:
        sentences = (use.tokens for use in uses)
        for row, (use, states) in enumerate(zip(uses, elmo.embed_sentences(sentences), strict=True)):
            state: Tensor = states[names[layer], use.position].mean(0)  # [L', 2P] → [2P]
            vectors[row] = state.numpy()
            progress.update(len(use.tokens))
    return vectors


def query_use(sentence: str, word: str, *, ignore_case: bool) -> Use:
    """The first use of a word in a sentence of tokens; an `InputError` where there is none."""
    tokens = sentence.split()
    found = positions(tokens, word, ignore_case)
    if not found:
        raise InputError(f"--in does not have the token {shortened(word)!r}")
    return Use(tuple(tokens), found[0])


def nearest_uses(elmo: ElmoC, query: Use, uses: Sequence[Use], *, top: int, layer: str) -> list[tuple[Use, float]]:
    """At most `top` uses and the cosines of their vectors with the query's, nearest first."""
    vectors = use_vectors(elmo, [query, *uses], layer)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
    cosines = directions[1:] @ directions[0]
    return [(uses[index], float(cosines[index])) for index in np.argsort(-cosines, kind="stable")[:top]]
