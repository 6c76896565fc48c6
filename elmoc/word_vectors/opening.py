"""Opening word vectors of any kind, from the one string that commands take and model
directories record.
"""

import json
import os
import re
from collections.abc import Collection
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from elmoc.errors import InputError, reading, shortened
from elmoc.files.compression import require_file, unpacked_name
from elmoc.files.records import check_version
from elmoc.word_vectors.fasttext import FastTextVectors
from elmoc.word_vectors.fasttext_file import MAX_SIZE
from elmoc.word_vectors.sources import RandomVectors, TextVectors, WordVectors

if TYPE_CHECKING:
    from elmoc.word_vectors.stored import StoredVectors

# The files of the kinds of word vectors that go with a model.
STORED_FILES = (
    "character_cnn.safetensors",
    "subwords.safetensors",
    "compact.safetensors",
    "lexicon.safetensors",
)
_RANDOM = re.compile(r"random:([0-9]{1,20}):([1-9][0-9]{0,3})")


def open_word_vectors(
    origin: Path | str, only: Collection[str] | None = None
) -> WordVectors:
    """Open word vectors of any kind.

    Args:
        origin: `FILE.bin`, `FILE.vec[.gz]`, `FILE.txt[.gz]`, `random:SEED:SIZE`, or a
            model's own: a `.safetensors` file, or the directory that has one.
        only: the words that will be asked for, where that is known: a text file then
            takes less memory.
    """
    origin = os.fspath(origin)
    random = _RANDOM.fullmatch(origin)
    if random is not None:
        return RandomVectors(seed=int(random[1]), size=int(random[2]))
    if origin.endswith(".bin"):
        return FastTextVectors(origin)
    if unpacked_name(origin).endswith((".vec", ".txt")):
        return TextVectors(origin, only)
    if os.path.isdir(origin):
        origin = _stored_in(origin)
    if origin.endswith(".safetensors"):
        return read_stored(origin)
    raise InputError(
        f"{shortened(origin)}: word vectors are a fastText .bin file, a text .vec or "
        ".txt file (also .gz), the directory of a model with word vectors of its own, "
        "or random:SEED:SIZE (such as random:1:300)"
    )


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


def read_stored(path: Path | str) -> "StoredVectors":
    """The `StoredVectors` of a file.

    Raises:
        InputError: the file is missing, damaged, of another version, or has numbers
            that are not finite.
    """
    # These import PyTorch, which other vectors can do without.
    from elmoc.weights import read_tensors
    from elmoc.word_vectors.character_cnn import CharacterCnnVectors
    from elmoc.word_vectors.compact import CompactVectors
    from elmoc.word_vectors.stored import LexiconVectors
    from elmoc.word_vectors.subwords import SubwordVectors

    require_file(path)
    with reading(path):
        metadata, tensors = read_tensors(path)
        info = json.loads(metadata["elmoc"])
        kinds: dict[str, type[StoredVectors]] = {
            CharacterCnnVectors.format: CharacterCnnVectors,
            SubwordVectors.format: SubwordVectors,
            CompactVectors.format: CompactVectors,
            LexiconVectors.format: LexiconVectors,
        }
        kind = kinds[info["format"]]
        check_version(path, info, format=kind.format, version=kind.version)
        del info["format"], info["version"]
        vectors = kind.from_file(info, tensors, os.path.abspath(path))
        if not 0 < vectors.size <= MAX_SIZE:
            raise ValueError(f"its vectors have {vectors.size:,} numbers")
        return vectors
