"""Opening word vectors of any kind, from the one string that commands take and model directories record."""

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from elmoc.errors import InputError, reason, shortened
from elmoc.files.records import check_version, parse_json
from elmoc.files.text import absolute_path, require_file
from elmoc.word_vectors.fasttext.file import MAX_SIZE
from elmoc.word_vectors.fasttext.vectors import FastTextVectors
from elmoc.word_vectors.foreign import describe_foreign
from elmoc.word_vectors.sources import RandomVectors, TextVectors, WordVectors

if TYPE_CHECKING:
    from elmoc.word_vectors.stored import StoredVectors


def open_word_vectors(origin: Path | str, only: Collection[str] | None = None) -> WordVectors:
    """Open word vectors from `FILE.bin`, `FILE.vec[.gz]`, `FILE.txt[.gz]` or `random:SEED:SIZE`, or those of a model.

    The latter are a `.safetensors` file, or the directory of a model that has one.

    `only` lists the words that will be asked for, where that is known: a text file then takes less memory.
    Raises `InputError`, which says what the file is where it is something else.
    """
    origin = os.fspath(origin)
    try:
        return _open(origin, only)
    except InputError:
        if foreign := describe_foreign(origin):
            raise InputError(f"{origin} {foreign}") from None
        raise


def _open(origin: str, only: Collection[str] | None) -> WordVectors:
    if origin.startswith("random:"):
        numbers = re.fullmatch(r"random:([0-9]{1,20}):([0-9]{1,5})", origin)
        if numbers is None or not 1 <= int(numbers[2]) <= MAX_SIZE:
            raise InputError(
                f"{shortened(origin)!r} is not of the form random:SEED:SIZE, for instance random:1:300, with a SEED of "
                f"at most 20 digits and a SIZE of 1 to {MAX_SIZE:,}: correct it"
            )
        return RandomVectors(seed=int(numbers[1]), size=int(numbers[2]))
    if origin.endswith(".bin"):
        return FastTextVectors(origin)
    if origin.removesuffix(".gz").endswith((".vec", ".txt")):
        return TextVectors(origin, only)
    if origin.endswith(".safetensors") or os.path.isdir(origin):
        return open_stored(origin)
    raise InputError(
        f"{shortened(origin)}: word vectors are a fastText .bin file, a text .vec or .txt file (also .gz), an imported "
        "ELMo (its directory), or random:SEED:SIZE"
    )


def stored_kinds() -> "tuple[type[StoredVectors], ...]":
    """The kinds of vectors there are that go with a model."""
    from elmoc.word_vectors.character_cnn import StoredCharacterCnn  # these import PyTorch
    from elmoc.word_vectors.subwords import StoredSubwords

    return StoredCharacterCnn, StoredSubwords


def is_stored(origin: str) -> bool:
    """Whether the vectors of a model, by the origin that it records, go with it."""
    return Path(origin).name in [kind.file_name for kind in stored_kinds()]


def read_stored(path: Path | str) -> "StoredVectors":
    """Raises `InputError` when the file is missing, damaged, of another version, or has numbers not finite."""
    from elmoc.encoders.bidirectional import check_finite
    from elmoc.word_vectors.stored import ADVICE, METADATA

    require_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            description = (file.metadata() or {}).get(METADATA)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is truncated or damaged ({reason(error)}): {ADVICE}") from None
    kinds = {kind.format: kind for kind in stored_kinds()}
    if description is None:
        raise InputError(f"{path} is not of the format {' or '.join(kinds)}: {ADVICE}")
    info = parse_json(description, where=str(path), advice=ADVICE)
    named = info.get("format") if isinstance(info, dict) else None
    kind = kinds.get(named if isinstance(named, str) else "", stored_kinds()[0])
    check_version(path, info, format=kind.format, version=kind.version, advice=ADVICE)
    del info["format"], info["version"]
    try:
        check_finite(tensors)
    except InputError as error:
        raise InputError(f"{path}: {error}: {ADVICE}") from None
    return kind.from_file(info, tensors, str(path))


def open_stored(path: Path | str) -> WordVectors:
    """Open the vectors of a file, or of the one in a model directory or a run directory."""
    if os.path.isdir(path):
        names = [kind.file_name for kind in stored_kinds()]
        found = [Path(path, folder, name) for folder in ("", "model") for name in names]
        if not any(each.exists() for each in found):
            raise InputError(
                f"{path} has no {' or '.join(names)}: word vectors are in the directory of a model that was imported "
                "by `elmoc import-elmo` or trained with an input layer of its own; else give a file of them"
            )
        path = next(each for each in found if each.exists())
    return read_stored(path).word_vectors(absolute_path(path))
