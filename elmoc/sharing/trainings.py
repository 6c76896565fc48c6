"""Trainings: which trainings the record of a model tells of, and how many words they
have read.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from elmoc.encoders import DIRECTIONS


def training_words(record: Mapping[str, Any]) -> int | None:
    """The number of words that were read in this training and in those before it; None
    where one of them does not say.

    Of directions that were trained apart and joined, the larger number counts; of
    subwords, the words that they make.
    """
    parts = parts_of(record)
    if parts:
        words_of_parts = [training_words(part) for part in parts]
        return max(filter(None, words_of_parts)) if all(words_of_parts) else None
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
    """The record of each training: of this one, or of the directions that were trained
    apart, and of those before.
    """
    parts = parts_of(record)
    if not parts:
        yield record
        parts = [record["started_from"]] if "started_from" in record else []
    for part in parts:
        yield from trainings_of(part)


def parts_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records of directions that were trained apart and joined."""
    return [record[name] for name in DIRECTIONS if isinstance(record.get(name), dict)]
