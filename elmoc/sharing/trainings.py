"""Trainings: which trainings the record of a model tells of, how many words they have
read, and of which corpus.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from elmoc.corpus import Corpus


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


def corpus_of(record: Mapping[str, Any]) -> Corpus | None:
    """The corpus that a training has read; None where it is not there. Another may have
    been built at its path: the number of tokens tells them apart.
    """
    path = Path(str(record.get("corpus")))
    corpus = Corpus(path) if (path / "corpus.json").is_file() else None
    tokens = None if corpus is None else corpus.train_tokens
    return corpus if tokens == record.get("corpus_tokens") else None
