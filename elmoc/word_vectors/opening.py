"""Opening word vectors of any kind, from the one string that commands take and model
directories record.
"""

import json
import os
import re
from collections.abc import Collection
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmoc.errors import InputError, reading
from elmoc.files.compression import compression, open_binary
from elmoc.files.records import check_version
from elmoc.word_vectors.fasttext import FastTextVectors
from elmoc.word_vectors.fasttext_file import BEGINNING, MAX_SIZE
from elmoc.word_vectors.sources import RandomVectors, TextVectors, WordVectors

if TYPE_CHECKING:
    from torch import Tensor

    from elmoc.word_vectors.joined import JoinedVectors
    from elmoc.word_vectors.stored import StoredVectors

# The files of the kinds of word vectors that go with a model.
STORED_FILES = (
    "character_cnn.safetensors",
    "subwords.safetensors",
    "compact.safetensors",
    "alone.safetensors",
    "lexicon.safetensors",
    "joined.safetensors",
)
# Bytes by which the kind of a file is told.
_SAMPLE_BYTES = 1 << 12
_RANDOM = re.compile(r"random:([0-9]{1,20}):([1-9][0-9]{0,3})")


def is_random(origin: str) -> bool:
    """Whether word vectors are random, so that their origin names no file."""
    return origin.startswith("random:")


def origin_in(folder: Path, origin: str) -> str:
    """The origin of word vectors that a user names from `folder`, named from anywhere
    if `folder` is.
    """
    return origin if is_random(origin) else str(folder / origin)


def open_word_vectors(
    origin: Path | str, only: Collection[str] | None = None
) -> WordVectors:
    """Open word vectors of any kind.

    Args:
        origin: a fastText `.bin` file or a text file of vectors, packed or not, both by
            their content; `random:SEED:SIZE`; several that `join_vectors` has put side
            by side (`.json`); or a `.safetensors` file of a teacher or of a model, or
            the directory that has one.
        only: the words that will be asked for, where that is known: a text file then
            takes less memory.

    Raises:
        InputError: there is none, it is damaged, or of another kind, which it names.
    """
    origin = os.fspath(origin)
    random = _RANDOM.fullmatch(origin)
    if random is not None:
        return RandomVectors(seed=int(random[1]), size=int(random[2]))
    if os.path.isdir(origin):
        origin = _stored_in(origin)
    if origin.endswith(".safetensors"):
        return read_stored(origin)
    if origin.endswith(".json"):
        return open_joined(origin, only)
    if not os.path.exists(origin):
        raise InputError(
            f"{origin} does not exist: word vectors are a fastText .bin "
            "file, a text file (.vec, .txt, also packed), the directory of a model "
            "with word vectors of its own, or random:SEED:SIZE (such as random:1:300)"
        )
    with reading(origin), open_binary(origin) as file:
        start = file.read(_SAMPLE_BYTES)
    if start.startswith(BEGINNING) and compression(origin) is None:
        return FastTextVectors(origin)
    if start.startswith(BEGINNING) or b"\0" in start:
        raise InputError(
            f"{origin} is neither text nor a fastText .bin file as it is: unpack it; "
            "of a binary file of word2vec, gensim's `save_word2vec_format` makes text"
        )
    return TextVectors(origin, only)


def _stored_in(directory: str) -> str:
    """The file of word vectors in the directory of a model, or of a run."""
    for folder, name in product(("", "model"), STORED_FILES):
        path = os.path.join(directory, folder, name)
        if os.path.exists(path):
            return path
    raise InputError(
        f"{directory} has no {' or '.join(STORED_FILES)}: give a model with word "
        "vectors of its own"
    )


def open_joined(path: str, only: Collection[str] | None = None) -> "JoinedVectors":
    """The joined vectors of a record, whose sources are where they were, or beside it.

    Raises:
        InputError: a source is missing, or has other vectors.
    """
    # It imports PyTorch.
    from elmoc.word_vectors.joined import JoinedVectors

    record = JoinedVectors.read_record(path)
    parts = []
    for part in record.parts:
        beside = Path(path).with_name(os.path.basename(part.origin))
        is_moved = beside.exists() and not os.path.exists(part.origin)
        vectors = open_word_vectors(beside if is_moved else part.origin, only)
        if vectors.fingerprint != part.fingerprint:
            raise InputError(
                f"{vectors.origin} has the fingerprint {vectors.fingerprint}, not "
                f"{part.fingerprint}, which {path} joins"
            )
        parts.append(vectors)
    scales = [part.scale for part in record.parts]
    return JoinedVectors(parts, scales, origin=os.path.abspath(path))


def read_stored(path: Path | str) -> "StoredVectors":
    """The `StoredVectors` of a file.

    Raises:
        InputError: the file is missing, damaged, of another version, or has numbers
            that are not finite.
    """
    # It imports PyTorch, which other vectors can do without.
    from elmoc.weights import read_tensors

    with reading(path):
        metadata, tensors = read_tensors(path)
        info = json.loads(metadata["elmoc"])
        return vectors_of_tensors(info, tensors, os.path.abspath(path))


def vectors_of_tensors(
    info: dict[str, Any], tensors: "dict[str, Tensor]", origin: str
) -> "StoredVectors":
    """The vectors of a description and of finite tensors.

    Raises:
        InputError: they are of another version, or the parts do not fit together.
    """
    # These import PyTorch, which other vectors can do without.
    from elmoc.weights import taken
    from elmoc.word_vectors import (
        alone,
        character_cnn,
        compact,
        joined,
        stored,
        subwords,
    )

    kinds: tuple[type[StoredVectors], ...] = (
        character_cnn.CharacterCnnVectors,
        subwords.SubwordVectors,
        compact.CompactVectors,
        alone.AloneVectors,
        stored.LexiconVectors,
        joined.JoinedVectors,
    )
    kind = {each.format: each for each in kinds}[info["format"]]
    check_version(origin, info, format=kind.format, version=kind.version)
    del info["format"], info["version"]
    if kind is joined.JoinedVectors:
        info["parts"] = [
            vectors_of_tensors(each, taken(tensors, f"{number}."), origin)
            for number, each in enumerate(info["parts"])
        ]
    vectors = kind.from_file(info, tensors, origin)
    if not 0 < vectors.size <= MAX_SIZE:
        raise ValueError(f"its vectors have {vectors.size:,} numbers")
    return vectors
