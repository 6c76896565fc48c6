"""Training records: what model directories say of how an encoder was trained, and what it went on from."""

from collections.abc import Iterator, Mapping
from typing import Any

_DIRECTIONS = ("forward", "backward")


def training_words(record: Mapping[str, Any]) -> int | None:
    """How many words were read in this training and in those before it; None where the record does not say.

    Of directions that were trained apart and joined, the larger number; of subwords, the words that they make.
    """
    counts = [words for part in _parts(record) if (words := training_words(part))]
    words, units = record.get("words"), record.get("units_of_a_word", 1.0)
    if type(words) is int and words > 0 and isinstance(units, int | float) and units > 0:
        counts.append(round(words / units))
    before = record.get("started_from")
    earlier = training_words(before) if isinstance(before, dict) else None
    return (max(counts, default=0) + (earlier or 0)) or None


def training_corpora(record: Mapping[str, Any]) -> list[str]:
    """The corpus directories that were read in this training and in those before it, each once."""
    return list(dict.fromkeys(_corpora(record)))


def _corpora(record: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(corpus := record.get("corpus"), str):
        yield corpus
    for part in _parts(record):
        yield from _corpora(part)
    if isinstance(before := record.get("started_from"), dict):
        yield from _corpora(before)


def _parts(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records of directions that were trained apart and joined."""
    return [record[name] for name in _DIRECTIONS if isinstance(record.get(name), dict)]
