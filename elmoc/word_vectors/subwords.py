"""Subwords: byte-level BPE (Sennrich et al. 2016; Radford et al. 2019), which writes
any word as units of a lexicon.

A unit is written with a printable character for each byte, and `Ġ` for the space before
a word: `Ġun`, `heard`. Corpora of units have the merges in `subwords.json`, models that
read units have `subwords.safetensors`.
Letters: U units, E the width of their vectors.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from elmoc.corpus import BEGIN, END, SUBWORDS, UNKNOWN, Corpus
from elmoc.errors import InputError, reading
from elmoc.files.arrays import check_array
from elmoc.files.records import read_record, write_record
from elmoc.word_vectors.stored import StoredVectors, as_bytes, from_bytes

_FORMAT = "elmoc-subwords"
_VERSION = 1


class Subwords:
    """How words are split into units.

    row_of: the place of each unit.

    Args:
        units: all of them, `<s>`, `</s>` and perhaps `<unk>`, which no word is split
            into, among them.
        merges: pairs of units, in the order in which they are joined.

    Raises:
        InputError: the units do not suffice, or are not distinct.
    """

    def __init__(self, units: Sequence[str], merges: Sequence[tuple[str, str]]) -> None:
        import tokenizers
        from tokenizers.pre_tokenizers import ByteLevel

        self.units = units
        self.merges = merges
        self.row_of = {unit: row for row, unit in enumerate(units)}
        lacking = {BEGIN, END, *ByteLevel.alphabet()} - self.row_of.keys()
        made = {left + right for left, right in merges} & {BEGIN, END, UNKNOWN}
        if len(self.row_of) < len(units) or lacking or made:
            raise InputError(
                "its units are not distinct, or lack a byte or the mark of a boundary, "
                "or merges make one"
            )
        self._tokenizer = tokenizers.Tokenizer(
            tokenizers.models.BPE(vocab=self.row_of, merges=list(merges))
        )
        # The boundary before every word; words are divided by nothing else.
        self._tokenizer.pre_tokenizer = ByteLevel(use_regex=False)
        # An empty word is its boundary alone. A corpus has `<unk>` for a rare word.
        special = {"": "Ġ", UNKNOWN: UNKNOWN}
        self._special = {
            word: [self.row_of[unit]]
            for word, unit in special.items()
            if unit in self.row_of
        }

    @classmethod
    def of_corpus(cls, corpus: Corpus) -> "Subwords":
        """The units of a corpus of subwords.

        Raises:
            InputError: it is a corpus of words.
        """
        path = corpus.path / SUBWORDS
        if not corpus.record.subwords:
            raise InputError(
                f"{corpus.path} is a corpus of words: `python -m "
                "data_scripts.build_subwords` splits it"
            )
        record = read_record(path, MergesRecord, format=_FORMAT, version=_VERSION)
        with reading(path):
            return cls(corpus.lexicon, record.merges)

    def write_merges(self, corpus: Path) -> None:
        """Write the file of a corpus directory whose lexicon are the units."""
        write_record(
            corpus / SUBWORDS,
            MergesRecord(list(self.merges)),
            format=_FORMAT,
            version=_VERSION,
        )

    def rows(self, words: Sequence[str]) -> list[list[int]]:
        """The rows of the units of each word; there is always one."""
        # Word by word it is quicker than by its batches, and starts no threads.
        # The library takes no half of a surrogate pair.
        texts = [word.encode("utf-8", "replace").decode() for word in words]
        return [
            self._special.get(text)
            or self._tokenizer.encode(text, add_special_tokens=False).ids
            for text in texts
        ]

    def split(self, sentences: Iterable[Sequence[str]]) -> list[list[list[str]]]:
        """The units of each word of sentences."""
        sentences = list(sentences)
        types = list(set(chain.from_iterable(sentences)))
        units = {}
        for word, rows in zip(types, self.rows(types), strict=True):
            units[word] = [self.units[row] for row in rows]
        return [[units[word] for word in sentence] for sentence in sentences]


@dataclass(frozen=True)
class MergesRecord:
    """What `subwords.json` holds."""

    merges: list[tuple[str, str]]


class SubwordVectors(StoredVectors):
    """The vectors of the units of a model, float32 [U, E], and how words are split into
    these.
    """

    file_name = "subwords.safetensors"
    format = "elmoc-subword-vectors"

    def __init__(
        self, vectors: Tensor, subwords: Subwords, *, origin: str = file_name
    ) -> None:
        self.vectors = vectors
        self.subwords = subwords
        self.origin = origin
        [_, self.size] = check_array(
            "vectors", vectors.numpy(), np.float32, (len(subwords.units), None)
        )

    def tensors(self) -> dict[str, Tensor]:
        return {
            "vectors": self.vectors,
            "units": as_bytes(self.subwords.units),
            "merges": as_bytes(self.subwords.merges),
        }

    @classmethod
    def from_file(
        cls, info: Mapping[str, Any], tensors: dict[str, Tensor], origin: str
    ) -> "SubwordVectors":
        subwords = Subwords(
            from_bytes(tensors["units"], list[str]),
            from_bytes(tensors["merges"], list[tuple[str, str]]),
        )
        return cls(tensors["vectors"], subwords, origin=origin)

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E], of units.

        Raises:
            InputError: a string is no unit.
        """
        with reading(f"{self.origin}, which has vectors of subwords,"):
            rows = [self.subwords.row_of[word] for word in words]
        return np.asarray(self.vectors)[rows]
