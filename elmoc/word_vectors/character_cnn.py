"""Character CNN vectors: frozen word vectors that a character CNN makes of any string, and their file.

Models that read such vectors have the file (`character_cnn.safetensors`) in their directory.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from elmoc.encoders.bidirectional import check_weights
from elmoc.errors import InputError, shortened
from elmoc.files.arrays import all_finite
from elmoc.files.checksums import fingerprint
from elmoc.files.records import as_json, convert
from elmoc.process import leave_threads_of_parent
from elmoc.settings import setting
from elmoc.word_vectors.character_network import CharacterCnn, CharacterCnnConfig
from elmoc.word_vectors.characters import LEXICON, SPELLINGS, UTF8, LexiconSpelling, Spelling, Utf8Spelling, WordIds
from elmoc.word_vectors.stored import ADVICE, StoredVectors, as_bytes, from_bytes

FILE_NAME = "character_cnn.safetensors"
_KEPT = "kept."
_LEXICONS = ("lexicon.characters", "lexicon.words")
_BLOCK_WORDS = 1 << 14
_BATCH_NUMBERS = 1 << 22
"""What the widest of the filters may make of a batch of words: 16 MiB."""


@dataclass(frozen=True)
class CharacterCnnRecord:
    """What the file says of itself; `spelling` is one of `SPELLINGS`."""

    network: CharacterCnnConfig
    spelling: str = setting(choices=SPELLINGS)


@dataclass(frozen=True)
class StoredCharacterCnn(StoredVectors):
    """The content of the file.

    weights: of the `CharacterCnn`, by their names in it.
    characters, words: the ids of the lexicons, where there are any.
    kept: tensors that lookups have no need of, and who writes the original's files has.
    """

    file_name: ClassVar[str] = FILE_NAME
    format: ClassVar[str] = "elmoc-character-cnn"

    record: CharacterCnnRecord
    weights: Mapping[str, Tensor]
    characters: Mapping[str, int] | None = None
    words: Mapping[str, int] | None = None
    kept: Mapping[str, Tensor] = field(default_factory=dict)

    def description(self) -> dict[str, Any]:
        return as_json(self.record, format=self.format, version=self.version)

    def tensors(self) -> dict[str, Tensor]:
        tensors = {**self.weights, **{f"{_KEPT}{name}": tensor for name, tensor in self.kept.items()}}
        return tensors | {name: as_bytes(ids) for name, ids in self._lexicons.items()}

    @classmethod
    def from_file(cls, info: Mapping[str, Any], tensors: dict[str, Tensor], where: str) -> "StoredCharacterCnn":
        record = convert(info, CharacterCnnRecord, where=where, advice=ADVICE)
        try:
            lexicons = {
                name: from_bytes(name, tensors.pop(name), dict[str, int]) for name in _LEXICONS if name in tensors
            }
        except InputError as error:
            raise InputError(f"{where}: {error}: {ADVICE}") from None
        kept = {name.removeprefix(_KEPT): tensors.pop(name) for name in list(tensors) if name.startswith(_KEPT)}
        return cls(record, tensors, lexicons.get(_LEXICONS[0]), lexicons.get(_LEXICONS[1]), kept)

    def word_vectors(self, origin: str) -> "CharacterCnnVectors":
        return CharacterCnnVectors(self, origin=origin)

    @property
    def fingerprint(self) -> str:
        config = self.description()
        lexicons = [json.dumps([name, ids]).encode() for name, ids in self._lexicons.items()]
        weights = [
            name.encode() + tensor.contiguous().numpy().tobytes() for name, tensor in sorted(self.weights.items())
        ]
        return fingerprint(json.dumps(config).encode(), *lexicons, *weights)

    @property
    def _lexicons(self) -> dict[str, Mapping[str, int]]:
        both = zip(_LEXICONS, (self.characters, self.words), strict=True)
        return {name: ids for name, ids in both if ids is not None}


class CharacterCnnVectors:
    """Word vectors that a character CNN makes: every string has one.

    They are computed in batches of words of like length, in bounded memory; the same word in another batch has the same
    vector up to rounding. Raises `InputError` where parts of `stored` do not fit each other.
    """

    def __init__(self, stored: StoredCharacterCnn, *, origin: str) -> None:
        self.stored = stored
        self.origin = origin
        config = stored.record.network
        self.size = config.projection_size
        with torch.device("meta"):
            self._network = CharacterCnn(config)
        try:
            check_weights(stored.weights, self._network.state_dict())
            self._spelling = _spelling(stored)
            self._words = None
            if config.word_size:
                _check_ids(stored.words, config.words, "words")
                self._words = WordIds(config.max_characters_per_token, stored.words or {})
        except InputError as error:
            raise InputError(f"{origin}: {error}: {ADVICE}") from None
        self._network.load_state_dict(stored.weights, assign=True)
        self._network.eval()

    @cached_property
    def fingerprint(self) -> str:
        """A content hash of weights and lexicons."""
        return self.stored.fingerprint

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), P]."""
        leave_threads_of_parent()
        vectors = np.empty((len(words), self.size), dtype=np.float32)
        for start in range(0, len(words), _BLOCK_WORDS):
            self._look_up_block(words[start : start + _BLOCK_WORDS], vectors[start : start + _BLOCK_WORDS])
        if len(words) and not all_finite(vectors):
            word = words[int(np.argmin(np.isfinite(vectors).all(axis=1)))]
            raise InputError(f"{self.origin}: the vector of {shortened(word)!r} is not finite: {ADVICE}")
        return vectors

    def _look_up_block(self, words: Sequence[str], vectors: np.ndarray) -> None:
        config = self.stored.record.network
        spelled = [self._spelling.characters(word) if self._spelling else () for word in words]
        order = sorted(range(len(words)), key=lambda index: -len(spelled[index]))  # the first of a batch is its longest
        most = max((number for _, number in config.filters), default=1)
        start = 0
        while start < len(order):
            length = min(config.max_characters_per_token, len(spelled[order[start]]) + 2 + config.widest)
            batch = order[start : start + max(1, _BATCH_NUMBERS // (most * length))]
            start += len(batch)
            ids = None
            if self._spelling:
                ids = torch.from_numpy(self._spelling.rows([spelled[index] for index in batch], config.widest))
            rows = torch.from_numpy(self._words.rows([words[index] for index in batch])) if self._words else None
            with torch.inference_mode():
                vectors[batch] = self._network(ids, rows).numpy()


def _spelling(stored: StoredCharacterCnn) -> Spelling | None:
    """How words are spelled; None where the network reads no characters."""
    config = stored.record.network
    if not config.filters:
        return None
    if stored.record.spelling == UTF8:
        if config.characters != Utf8Spelling.SIZE:
            raise InputError(f"it has {config.characters} characters, where {Utf8Spelling.SIZE} are expected")
        return Utf8Spelling(config.max_characters_per_token)
    assert stored.record.spelling == LEXICON
    _check_ids(stored.characters, config.characters, "characters")
    return LexiconSpelling(config.max_characters_per_token, stored.characters or {})


def _check_ids(ids: Mapping[str, int] | None, rows: int, what: str) -> None:
    """Raise an `InputError` unless every id of a lexicon has a row."""
    if ids is None:
        raise InputError(f"it lacks its lexicon of {what}")
    for name, number in ids.items():
        if not 0 <= number < rows:
            raise InputError(f"its lexicon of {what} gives {shortened(name)!r} the id {number}, of {rows:,} from 0 on")
