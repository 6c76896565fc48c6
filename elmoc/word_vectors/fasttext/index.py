"""Index of a fastText dictionary: where a word stands in the file, found without reading the dictionary.

The index of a large dictionary is kept beside its file, as `FILE.bin.index`, or, where that folder cannot be written,
in the user's cache directory; every process maps it into memory. It names the state of the file that it was made of,
and its own content by a checksum: one that is damaged, or of another state of the file, is made anew.
"""

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash

from elmoc.errors import InputError, describe_error
from elmoc.files.checksums import check_size, fingerprint_file
from elmoc.files.locks import locked
from elmoc.files.records import as_json, check_version, convert, json_bytes, parse_json
from elmoc.files.text import open_binary, require_file
from elmoc.files.writing import atomic_path, require_space
from elmoc.kernels.compiling import cache_path
from elmoc.settings import setting
from elmoc.word_vectors.fasttext.file import COUNT_AND_TYPE, FastTextFile, open_file
from elmoc.word_vectors.fasttext.subwords import hash_strings

FORMAT, VERSION = "elmoc fastText index", 1
KEPT_BYTES = 1 << 20
"""Of a smaller dictionary no index is kept: it is made in no time."""
_ADVICE = "it is made again"
_HEAD_BYTES = 4096
_ENTRY_BYTES = 16
_READ_BYTES = 1 << 22


@dataclass(frozen=True)
class _FileState:
    """What a file is known again by: all bytes of its header and dictionary, and blocks of the rest."""

    bytes: int = setting(least=0)
    modified_ns: int = setting()
    fingerprint: str = setting()
    dictionary_end: int = setting(least=1)
    dictionary_checksum: str = setting()

    @classmethod
    def of(cls, path: Path | str, dictionary_end: int) -> "_FileState":
        status = os.stat(path)
        digest, left = xxhash.xxh3_64(), dictionary_end
        with open(path, "rb", buffering=0) as file:
            while left and (block := file.read(min(_READ_BYTES, left))):
                digest.update(block)
                left -= len(block)
        return cls(status.st_size, status.st_mtime_ns, fingerprint_file(path), dictionary_end, digest.hexdigest())


@dataclass(frozen=True)
class _Head:
    """The beginning of an index file."""

    file: _FileState
    entries: int = setting(least=1, below=1 << 31)
    checksum: str = setting()
    """Of what follows: offsets, hashes and numbers."""


@dataclass(frozen=True)
class DictionaryIndex:
    """The entries of a dictionary in the order of their hashes, and of their numbers where these are equal.

    hashes   uint32 [entries]
    numbers  uint32 [entries]: words come before labels, and their numbers are their rows
    offsets  int64 [entries]: where an entry begins in the file
    """

    hashes: np.ndarray
    numbers: np.ndarray
    offsets: np.ndarray

    @classmethod
    def build(cls, entries: np.ndarray, file: FastTextFile) -> "DictionaryIndex":
        """The index of a file whose entries begin at `entries`."""
        lengths = np.diff(entries, append=file.dictionary_end) - 1 - COUNT_AND_TYPE.itemsize
        hashes = hash_strings(np.frombuffer(file.content, np.uint8), entries, lengths)
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], order.astype(np.uint32), entries[order])

    def find(self, file: FastTextFile, text: bytes, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """int64 [n]: the numbers of the words that lie in a text at these places; −1 for one that is not there.

        Of a word that is there twice it is the last number, as it is for the library.
        """
        hashes = hash_strings(np.frombuffer(text, np.uint8), begins, ends - begins)
        first, last = (np.searchsorted(self.hashes, hashes, side=side) for side in ("left", "right"))
        found = np.full(len(begins), -1, dtype=np.int64)
        for row in np.flatnonzero(first < last):
            word = text[begins[row] : ends[row]]
            for slot in range(last[row] - 1, first[row] - 1, -1):
                offset = int(self.offsets[slot])
                if file.content[offset : offset + len(word) + 1] == word + b"\0" and b"\0" not in word:
                    found[row] = self.numbers[slot]
                    break
        return found


def open_indexed(path: Path | str) -> tuple[FastTextFile, DictionaryIndex | None]:
    """Open a fastText `.bin` file (see `open_file`) with the index of its dictionary; quantised files have none."""
    for place in _places(path):
        if kept := _read(place, path):
            end, index = kept
            return open_file(path, dictionary_end=end), index
    before = _stamp(path)
    file = open_file(path)
    if file.quantised or file.entries is None:
        return file, None
    index = DictionaryIndex.build(file.entries, file)
    if file.dictionary_end >= KEPT_BYTES:
        state = _FileState.of(path, file.dictionary_end)
        if (state.bytes, state.modified_ns) == before:
            index = _keep(path, state, index)
    return file, index


def _stamp(path: Path | str) -> tuple[int, int]:
    require_file(path)
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _places(path: Path | str) -> Iterator[Path]:
    """Where the index of a file may be, the best place first."""
    path = os.path.realpath(path)
    yield Path(f"{path}.index")
    with suppress(RuntimeError):  # there is no home directory
        yield cache_path() / "indexes" / f"{hashlib.blake2b(os.fsencode(path), digest_size=16).hexdigest()}.index"


def _keep(path: Path | str, state: _FileState, index: DictionaryIndex) -> DictionaryIndex:
    """Write an index to the first place that can be written; returns it, mapped from there where that was possible."""
    arrays = [index.offsets.astype("<i8"), index.hashes.astype("<u4"), index.numbers.astype("<u4")]
    why = ""
    for place in _places(path):
        alone = False
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(place):
                alone = True
                _write(place, state, arrays)
        except (InputError, OSError) as error:
            if isinstance(error, InputError) and not alone:  # another process is writing it now
                return index
            why = describe_error(error)
        else:
            kept = _read(place, path)
            return kept[1] if kept else index
    print(f"warning: no index of {path} can be kept, each opening makes it anew ({why})", file=sys.stderr)
    return index


def _write(place: Path, state: _FileState, arrays: Sequence[np.ndarray]) -> None:
    digest = xxhash.xxh3_64()
    for array in arrays:
        digest.update(array.data)
    head = as_json(_Head(state, len(arrays[0]), digest.hexdigest()), format=FORMAT, version=VERSION)
    require_space(place, _HEAD_BYTES + _ENTRY_BYTES * len(arrays[0]))
    with atomic_path(place) as partial, open(partial, "wb") as file:
        file.write(json_bytes(head).ljust(_HEAD_BYTES))
        for array in arrays:
            file.write(array.data)


def _read(place: Path, path: Path | str) -> tuple[int, DictionaryIndex] | None:
    """Where the dictionary of `path` ends, and its index, kept at `place`.

    None where there is none, or one that is damaged or of another state of `path`.
    """
    size, modified_ns = _stamp(path)
    try:
        with open_binary(place) as file:
            info = parse_json(file.read(_HEAD_BYTES), where=str(place), advice=_ADVICE)
        check_version(place, info, format=FORMAT, version=VERSION, advice=_ADVICE)
        del info["format"], info["version"]
        head = convert(info, _Head, where=str(place), advice=_ADVICE)
        check_size(place, _HEAD_BYTES + _ENTRY_BYTES * head.entries, advice=_ADVICE)
        content = np.memmap(place, np.uint8, mode="r", offset=_HEAD_BYTES)
    except (InputError, OSError):
        return None
    state = head.file
    if (state.bytes, state.modified_ns) != (size, modified_ns) or state != _FileState.of(path, state.dictionary_end):
        return None
    if xxhash.xxh3_64_hexdigest(content.data) != head.checksum:
        return None
    offsets, hashes, numbers = np.split(content, [8 * head.entries, 12 * head.entries])
    index = DictionaryIndex(hashes.view("<u4"), numbers.view("<u4"), offsets.view("<i8"))
    inside = 0 <= index.offsets.min() <= index.offsets.max() < state.dictionary_end
    return (state.dictionary_end, index) if inside else None
