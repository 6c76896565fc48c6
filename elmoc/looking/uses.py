"""Uses of a word: where it stands in a text, the vectors that an encoder gives it
there, and the nearest to one.
"""

import random
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from elmoc.errors import InputError, shortened
from elmoc.model import ElmoC
from elmoc.process import progress_bar
from elmoc.text.documents import (
    check_tokenised,
    lines_of,
    read_documents,
    whole_files,
)
from elmoc.text.named_files import find_named_files

# Words that the encoder reads on each side of the word: what is farther away hardly
# changes a vector, and lines of thousands of words take memory.
CONTEXT_WORDS = 200
# Words that are shown on each side: they fit on two lines of a terminal.
SHOWN_WORDS = 12


class Use(NamedTuple):
    """One occurrence of a word.

    tokens: the sentence, or the part of it around the word.
    position: which of the tokens is the word.
    line: the number of the line in the text, from 1; of rows, that of their lines.
    """

    tokens: tuple[str, ...]
    position: int
    line: int = 0

    def around(self, most: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """At most `most` words before it, and as many after it."""
        first = max(0, self.position - most)
        behind = self.position + 1
        return self.tokens[first : self.position], self.tokens[behind : behind + most]

    def marked(self, begin: str = "[", end: str = "]") -> str:
        """The sentence with the word in brackets, or between other marks, shortened to
        `SHOWN_WORDS` on each side.
        """
        before, after = self.around(SHOWN_WORDS)
        words = [*before, f"{begin}{self.tokens[self.position]}{end}", *after]
        if len(before) < self.position:
            words.insert(0, "…")
        if self.position + 1 + len(after) < len(self.tokens):
            words.append("…")
        return " ".join(words)


def find_uses(
    corpus: Path | str, word: str, *, most: int = 1000, ignore_case: bool = False
) -> tuple[list[Use], int]:
    """The uses of a word in a text, and their number.

    Args:
        corpus: tokenised text of any kind that `read_documents` takes.
        word: the word.
        most: of more uses there is a sample, the same each time; equal sentences count
            once.
        ignore_case: find it in upper and lower case.

    Raises:
        InputError: there is none.
    """
    generator = random.Random(0)
    count = 0
    kept = list[Use]()
    texts = whole_files(find_named_files([corpus]))
    check_tokenised(texts)
    lines = lines_of(chain.from_iterable(map(read_documents, texts)))
    for number, line in enumerate(lines, 1):
        # Most lines are passed over without being split.
        tokens = line.split() if ignore_case or word in line else []
        for position in positions(tokens, word, ignore_case):
            count += 1
            first = max(0, position - CONTEXT_WORDS)
            context = tuple(tokens[first : position + CONTEXT_WORDS + 1])
            use = Use(context, position - first, number)
            if len(kept) < most:
                kept.append(use)
                continue
            # Each use is kept with the same probability (Vitter 1985, algorithm R).
            place = generator.randrange(count)
            if place < most:
                kept[place] = use
    if not kept:
        raise InputError(
            f"{corpus} has no token {shortened(word)!r}, as it is written here (see "
            "--ignore-case)"
        )
    kept.sort(key=attrgetter("line", "position"))
    # Of equal sentences the first line stays.
    distinct = {(use.tokens, use.position): use for use in reversed(kept)}
    return sorted(distinct.values(), key=attrgetter("line", "position")), count


def positions(tokens: Sequence[str], word: str, ignore_case: bool) -> list[int]:
    """Where a word stands among tokens."""
    if ignore_case:
        word = word.casefold()
        tokens = [token.casefold() for token in tokens]
    return [position for position, token in enumerate(tokens) if token == word]


def use_vectors(
    elmo: ElmoC, uses: Sequence[Use], layers: Iterable[str]
) -> list[Tensor]:
    """float32 [n, 2P]: the vector of each use in its sentence, for each choice of
    layers.

    Args:
        elmo: the encoder.
        uses: of a word.
        layers: each as `SentenceEncoder.choose_layers` takes it; of several layers the
            mean.
    """
    selects = [elmo.choose_layers(layer).select for layer in layers]
    sentences = elmo.embed_sentences(use.tokens for use in uses)
    with progress_bar(
        iterable=sentences,
        total=len(uses),
        unit=" uses",
        desc="encoding",
        leave=False,
        delay=2,
    ) as found:
        # Copies: the other words of the sentences are not kept.
        places = [
            each[:, use.position].clone() for use, each in zip(uses, found, strict=True)
        ]
    # [L + 1, n, 2P]
    states = torch.stack(places, dim=1)
    return [
        select(states).reshape(-1, len(uses), elmo.width).mean(0) for select in selects
    ]


def nearest_uses(
    elmo: ElmoC, query: Use, uses: Sequence[Use], *, top: int, layer: str
) -> list[tuple[Use, float]]:
    """At most `top` uses with vectors that are nearest to the query's, and cosines."""
    [vectors] = use_vectors(elmo, [query, *uses], [layer])
    # A vector of zeros has the cosine 0 with all others.
    directions = normalize(vectors)
    cosines = directions[1:] @ directions[0]
    nearest = cosines.argsort(descending=True, stable=True)[:top]
    return [(uses[index], float(cosines[index])) for index in nearest.tolist()]
