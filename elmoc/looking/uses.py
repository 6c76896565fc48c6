"""Uses of a word: where it stands in a text, the vectors that an encoder gives it
there, and the nearest to one.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from elmoc.errors import InputError, shortened
from elmoc.files.text import read_lines
from elmoc.model import ElmoC
from elmoc.process import progress_bar

# words that are read, and words that are shown, on each side of the word
CONTEXT_WORDS = 200
SHOWN_WORDS = 12


class Use(NamedTuple):
    """One occurrence of a word: its sentence, which of the tokens it is, and the line
    of the text, from 1.
    """

    tokens: tuple[str, ...]
    position: int
    line: int = 0

    def around(self, most: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """At most `most` words before it, and as many after it."""
        return (
            self.tokens[max(0, self.position - most) : self.position],
            self.tokens[self.position + 1 : self.position + 1 + most],
        )

    def marked(self) -> str:
        """The sentence with the word in brackets, shortened to `SHOWN_WORDS` on each
        side.
        """
        before, after = self.around(SHOWN_WORDS)
        words = [*before, f"[{self.tokens[self.position]}]", *after]
        cut_before = len(before) < self.position
        cut_after = self.position + 1 + len(after) < len(self.tokens)
        return " ".join(["…"] * cut_before + words + ["…"] * cut_after)


def find_uses(
    corpus: Path | str, word: str, *, most: int = 1000, ignore_case: bool = False
) -> tuple[list[Use], int]:
    """The uses of a word in a text of one tokenised sentence a line, plain or `.gz`,
    and how many there are.

    Of more than `most` there is a sample, the same each time; equal sentences count
    once. Raises `InputError` when there are none.
    """
    generator = random.Random(0)
    count = 0
    kept = list[Use]()
    for number, line in enumerate(read_lines(corpus), 1):
        tokens = (
            line.split() if word in line or ignore_case else []
        )  # most lines are passed over without being split
        for position in positions(tokens, word, ignore_case):
            count += 1
            first = max(0, position - CONTEXT_WORDS)
            use = Use(
                tuple(tokens[first : position + CONTEXT_WORDS + 1]),
                position - first,
                number,
            )
            if len(kept) < most:
                kept.append(use)
            elif (
                place := generator.randrange(count)
            ) < most:  # each use is kept with the same probability
                kept[place] = use
    if not kept:
        raise InputError(
            f"{corpus} has no token {shortened(word)!r}, as it is written here (see --ignore-case)"
        )
    distinct = {use[:2]: use for use in sorted(kept, key=lambda use: -use.line)}
    return sorted(distinct.values(), key=lambda use: (use.line, use.position)), count


def positions(tokens: Sequence[str], word: str, ignore_case: bool) -> list[int]:
    """Where a word stands among tokens."""
    if ignore_case:
        word = word.casefold()
        tokens = [token.casefold() for token in tokens]
    return [position for position, token in enumerate(tokens) if token == word]


def use_vectors(elmo: ElmoC, uses: Sequence[Use], layer: str) -> np.ndarray:
    """float32 [n, 2P]: the vector of each use in its sentence; `layer` is `average`,
    `top`, or a number from 0.
    """
    names = {str(number): [number] for number in range(elmo.layers)}
    names |= {"average": list(range(elmo.layers)), "top": [elmo.layers - 1]}
    if layer not in names:
        raise InputError(f"--layer takes {', '.join(names)}, not {shortened(layer)!r}")
    states = elmo.embed_sentences(use.tokens for use in uses)
    with progress_bar(
        iterable=states,
        total=len(uses),
        unit=" uses",
        desc="encoding",
        leave=False,
        delay=2,
    ) as found:
        vectors = [
            each[names[layer], use.position].mean(0).numpy()  # [L', 2P] → [2P]
            for use, each in zip(uses, found, strict=True)
        ]
    return np.stack(vectors)


def nearest_uses(
    elmo: ElmoC, query: Use, uses: Sequence[Use], *, top: int, layer: str
) -> list[tuple[Use, float]]:
    """At most `top` uses and the cosines of their vectors with the query's, nearest
    first.
    """
    vectors = use_vectors(elmo, [query, *uses], layer)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
    cosines = directions[1:] @ directions[0]
    return [
        (uses[index], float(cosines[index]))
        for index in np.argsort(-cosines, kind="stable")[:top]
    ]
