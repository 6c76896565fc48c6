"""Training records: what model directories say of how an encoder was trained, and what it went on from."""

from collections.abc import Iterator, Mapping
from typing import Any

GENERAL = "general"
"""The kind of text that `python -m pretrain.adapt` mixes in: other text than what it is given."""
_DIRECTIONS = ("forward", "backward")


def training_words(record: Mapping[str, Any]) -> int | None:
    """How many words were read in this training and in those before it; None where one of them does not say.

    Of directions that were trained apart and joined, the larger number; of subwords, the words that they make.
    """
    if parts := parts_of(record):
        of_parts = [training_words(part) for part in parts]
        return None if None in of_parts else max(words for words in of_parts if words is not None)
    words, units = record.get("words"), record.get("units_of_a_word", 1.0)
    if type(words) is not int or words < 0 or not isinstance(units, int | float) or units <= 0:
        return None
    before = record.get("started_from")
    earlier = 0 if before is None else training_words(before) if isinstance(before, dict) else None
    return None if earlier is None else (earlier + round(words / units)) or None


def training_corpora(record: Mapping[str, Any]) -> list[str | None]:
    """The corpus directories that were read in this training and in those before it, each once.

    None among them is that of a training that does not say.
    """
    named = (each.get("corpus") for each in trainings_of(record))
    return list(dict.fromkeys(corpus if isinstance(corpus, str) else None for corpus in named))


def trainings_of(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The record of each training: of this one, or of the directions that were trained apart, and of those before."""
    if parts := parts_of(record):
        for part in parts:
            yield from trainings_of(part)
        return
    yield record
    if (before := record.get("started_from")) is not None:
        yield from trainings_of(before if isinstance(before, dict) else {})


def parts_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records of directions that were trained apart and joined."""
    return [record[name] for name in _DIRECTIONS if isinstance(record.get(name), dict)]


def has_general_text(record: Mapping[str, Any]) -> bool:
    """Whether a model went on with new text (of which the licence is recorded) into which general text was mixed."""
    tokens = record.get("tokens_by_source")
    return isinstance(record.get("started_from"), dict) and isinstance(tokens, dict) and GENERAL in tokens
