"""Training records: what model directories say of how an encoder was trained, and what it went on from."""

from collections.abc import Iterator, Mapping
from typing import Any

from elmoc.encoders import DIRECTIONS

# the kind of text that an adapted model (`pretrain.recipe --init-from`) reads beside the new text
GENERAL = "general"


def training_words(record: Mapping[str, Any]) -> int | None:
    """How many words were read in this training and in those before it; None where one of them does not say.

    Of directions that were trained apart and joined, the larger number; of subwords, the words that they make.
    """
    if parts := parts_of(record):
        of_parts = [training_words(part) for part in parts]
        return None if None in of_parts else max(words for words in of_parts if words is not None)
    earlier = training_words(record["started_from"]) if "started_from" in record else 0
    if earlier is None or "words" not in record:
        return None
    return (earlier + round(record["words"] / record.get("units_of_a_word", 1))) or None


def trainings_of(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The record of each training: of this one, or of the directions that were trained apart, and of those before."""
    if parts := parts_of(record):
        for part in parts:
            yield from trainings_of(part)
        return
    yield record
    if "started_from" in record:
        yield from trainings_of(record["started_from"])


def parts_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records of directions that were trained apart and joined."""
    return [record[name] for name in DIRECTIONS if isinstance(record.get(name), dict)]
