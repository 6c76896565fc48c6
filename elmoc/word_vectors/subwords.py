"""Subwords: byte-level BPE (Sennrich et al. 2016; Radford et al. 2019), which writes
any word as units of a lexicon.

A unit is written with a printable character for each byte, and `Ġ` for the space before
a word: `Ġun`, `heard`. Corpora of units have the merges in `subwords.json`, models that
read units have `subwords.safetensors`.
Letters: U units, E the width of their vectors.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from elmoc.corpus import BEGIN, END, SUBWORDS, UNKNOWN, Corpus
from elmoc.errors import InputError, reading
from elmoc.files.checksums import fingerprint
from elmoc.files.records import read_record, write_record
from elmoc.word_vectors.stored import StoredVectors, as_bytes, from_bytes

BOUNDARY = "Ġ"  # a unit that begins a word starts with it
FILE_NAME = "subwords.safetensors"
_CORPUS_FORMAT = "elmoc-subwords"
_CORPUS_VERSION = 1


def begins_word(units: Sequence[str]) -> np.ndarray:
    """bool [U]: whether a word, or the boundary of a sentence, begins with each unit."""
    return np.array(
        [unit in (BEGIN, END, UNKNOWN) or unit.startswith(BOUNDARY) for unit in units]
    )


class Subwords:
    """How words are split into units.

    Args:
        units: all of them, `<s>`, `</s>` and perhaps `<unk>`, which no word is split
            into, among them.
        merges: pairs of units, in the order in which they are joined.

    row_of: the place of each unit.
    """

    def __init__(self, units: Sequence[str], merges: Sequence[tuple[str, str]]) -> None:
        os.environ.setdefault(
            "TOKENIZERS_PARALLELISM", "false"
        )  # else it warns in processes that are forked later
        import tokenizers

        self.units = units
        self.merges = merges
        self.row_of = rows = {unit: row for row, unit in enumerate(units)}
        needed = {*tokenizers.pre_tokenizers.ByteLevel.alphabet(), BEGIN, END}
        made = {left + right for left, right in merges}
        if (
            len(rows) < len(units)
            or not needed <= rows.keys()
            or made & {BEGIN, END, UNKNOWN}
        ):
            raise InputError(
                "its units are not distinct, or lack a byte or the mark of a boundary, or merges make one"
            )
        self._tokenizer = tokenizers.Tokenizer(
            tokenizers.models.BPE(vocab=rows, merges=list(merges))
        )
        self._tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
            add_prefix_space=True, use_regex=False
        )

    @classmethod
    def of_corpus(cls, corpus: Corpus) -> "Subwords":
        """Those of a corpus of units; an `InputError` where it is one of words."""
        path = corpus.path / SUBWORDS
        if not corpus.record.subwords:
            raise InputError(
                f"{corpus.path} is a corpus of words: `python -m data_scripts.build_subwords` splits it"
            )
        record = read_record(
            path, MergesRecord, format=_CORPUS_FORMAT, version=_CORPUS_VERSION
        )
        with reading(path):
            return cls(corpus.lexicon, record.merges)

    def write_merges(self, corpus: Path) -> None:
        """Write the file of a corpus directory whose lexicon are the units."""
        record = MergesRecord(list(self.merges))
        write_record(
            corpus / SUBWORDS, record, format=_CORPUS_FORMAT, version=_CORPUS_VERSION
        )

    def rows(self, words: Sequence[str]) -> list[list[int]]:
        """The rows of the units of each word; there is always one."""
        valid = [
            word.encode("utf-8", "replace").decode() for word in words
        ]  # of surrogates alone
        empty = [self.row_of[BOUNDARY]]
        return [
            encoding.ids or empty
            for encoding in self._tokenizer.encode_batch(
                valid, add_special_tokens=False
            )
        ]

    def split(self, sentences: Iterable[Sequence[str]]) -> list[list[list[str]]]:
        """The units of each word of sentences."""
        sentences = list(sentences)
        types = list(dict.fromkeys(word for sentence in sentences for word in sentence))
        split = {
            word: [self.units[row] for row in rows]
            for word, rows in zip(types, self.rows(types), strict=True)
        }
        return [[split[word] for word in sentence] for sentence in sentences]


@dataclass(frozen=True)
class MergesRecord:
    """What `subwords.json` holds."""

    merges: list[tuple[str, str]]


class SubwordVectors(StoredVectors):
    """The vectors of the units of a model, float32 [U, E], and how words are split into
    these.
    """

    file_name = FILE_NAME
    format = "elmoc-subword-vectors"

    def __init__(
        self, vectors: Tensor, subwords: Subwords, *, origin: str = FILE_NAME
    ) -> None:
        self.vectors = vectors
        self.subwords = subwords
        self.origin = origin
        if len(vectors) != len(subwords.units) or str(vectors.dtype) != "torch.float32":
            raise InputError(
                f"it has vectors {list(vectors.shape)} ({vectors.dtype}) of {len(subwords.units):,} units"
            )
        self.size: int = vectors.shape[1]

    def tensors(self) -> dict[str, Tensor]:
        split = self.subwords
        return {
            "vectors": self.vectors,
            "units": as_bytes(split.units),
            "merges": as_bytes(split.merges),
        }

    @classmethod
    def from_file(
        cls, info: Mapping[str, Any], tensors: dict[str, Tensor], origin: str
    ) -> "SubwordVectors":
        units = from_bytes(tensors["units"], list[str])
        merges = from_bytes(tensors["merges"], list[tuple[str, str]])
        return cls(tensors["vectors"], Subwords(units, merges), origin=origin)

    @cached_property
    def fingerprint(self) -> str:
        """A content hash of vectors and units."""
        vectors = self.vectors.contiguous().numpy().tobytes()
        merges = repr(list(self.subwords.merges)).encode()
        return fingerprint(["\n".join(self.subwords.units).encode(), merges, vectors])

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E], of units; an `InputError` for a string that is no
        unit.
        """
        with reading(f"{self.origin}, which has vectors of subwords,"):
            vectors: np.ndarray = self.vectors.numpy()[
                [self.subwords.row_of[word] for word in words]
            ]
        return vectors
