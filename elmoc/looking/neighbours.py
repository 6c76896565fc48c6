"""Neighbours: the uses of a word that an encoder finds nearest to a given one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elmoc.errors import InputError, shortened
from elmoc.looking.uses import Use, check_word, positions, use_vectors
from elmoc.model import ElmoC


@dataclass(frozen=True)
class Neighbour:
    """A use, and the cosine of its vector with that of the use it was looked for."""

    use: Use
    cosine: float


def query_use(sentence: str, word: str, *, occurrence: int = 1, ignore_case: bool) -> Use:
    """The use of a word in a sentence of tokens, separated by white space.

    Args:
        sentence: of tokens.
        word: one of them.
        occurrence: which one counts, from 1, where the word is there several times.
        ignore_case: whether upper and lower case are the same.

    Raises:
        InputError: it is not there, or not so many times.
    """
    check_word(word)
    tokens = sentence.split()
    found = positions(tokens, word, ignore_case)
    if not found:
        raise InputError(
            f"--in {shortened(sentence)!r} does not have the token {shortened(word)!r}: give a tokenised sentence with "
            "it"
        )
    if not 1 <= occurrence <= len(found):
        raise InputError(
            f"--occurrence must be from 1 to {len(found)}, as often as {shortened(word)!r} is in the sentence; not "
            f"{occurrence}"
        )
    return Use(tuple(tokens), found[occurrence - 1])


def nearest_uses(elmo: ElmoC, query: Use, uses: Sequence[Use], *, top: int, layer: str) -> list[Neighbour]:
    """At most `top` uses by their cosine with the query, nearest first."""
    vectors = use_vectors(elmo, [query, *uses], layer)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
    cosines = directions[1:] @ directions[0]
    return [Neighbour(uses[index], float(cosines[index])) for index in np.argsort(-cosines, kind="stable")[:top]]
