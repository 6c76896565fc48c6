"""Trainings: which trainings the record of a model tells of, and how many words they
have read.
"""

from collections.abc import Iterator, Mapping
from typing import Any


def training_words(record: Mapping[str, Any]) -> int | None:
    """The number of words that were read in this training and in those before it; None
    where one of them does not say. Of subwords, the words that they make count.
    """
    started_from = record.get("started_from")
    earlier = 0 if started_from is None else training_words(started_from)
    if earlier is None or "words" not in record:
        return None
    words = earlier + round(record["words"] / record.get("units_of_a_word", 1))
    # Feature files keep it in 64 bits.
    if not 0 <= words < 2**63:
        raise ValueError(f"{words} words were read")
    return words or None


def trainings_of(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The record of each training: of this one, and of those before."""
    yield record
    if "started_from" in record:
        yield from trainings_of(record["started_from"])
