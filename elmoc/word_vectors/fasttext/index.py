"""Index of a fastText dictionary: where a word stands in the file, found without reading the dictionary.

The index of a large dictionary is kept in the user's cache directory; every process maps it into memory. It names the
state of the file that it was made of, and its own content by a checksum: an index that is damaged, or of another state
of the file, is made anew.
"""

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from elmoc.errors import InputError
from elmoc.files.checksums import fingerprint_file
from elmoc.files.text import require_file
from elmoc.files.writing import atomic_path
from elmoc.kernels.compiling import cache_path
from elmoc.word_vectors.fasttext.file import COUNT_AND_TYPE, FastTextFile, open_file

_VERSION = 2
# Of a smaller dictionary no index is kept: it is made in no time.
KEPT_BYTES = 1 << 20
_HEAD_BYTES = 4096
# An entry of the dictionary: where it begins in the file, fastText's hash of it, and its number. Words come before
# labels, and the number of a word is its row. The index has them in the order of hashes, and of numbers where these are
# equal; lookup.cpp reads them.
ENTRY = np.dtype([("offset", "<i8"), ("hash", "<u4"), ("number", "<u4")])

Hash = Callable[[FastTextFile, np.ndarray, np.ndarray], np.ndarray]


def open_indexed(path: Path | str, hash_entries: Hash) -> tuple[FastTextFile, np.ndarray]:
    """Open a fastText `.bin` file (see `open_file`) with its index, `ENTRY` [entries].

    `hash_entries` gives fastText's hashes, uint32 [n], of the words of a file that begin and end at places of it.
    """
    require_file(path)
    status = os.stat(path)
    state = {"bytes": status.st_size, "modified_ns": status.st_mtime_ns, "fingerprint": fingerprint_file(path)}
    name = hashlib.blake2b(os.fsencode(os.path.realpath(path)), digest_size=16).hexdigest()
    place = cache_path() / "indexes" / f"{name}.index"
    with suppress(Exception):  # there is none, or whatever a damaged one raises
        end, index = _read(place, state)
        return open_file(path, dictionary_end=end), index
    file = open_file(path)
    assert file.entries is not None
    ends = np.append(file.entries[1:], file.dictionary_end) - 1 - COUNT_AND_TYPE.itemsize
    hashes = hash_entries(file, file.entries, ends)
    order = np.argsort(hashes, kind="stable")
    index = np.empty(len(order), ENTRY)
    index["offset"], index["hash"], index["number"] = file.entries[order], hashes[order], order
    if file.dictionary_end >= KEPT_BYTES:
        head = {"version": _VERSION, "file": state, "dictionary_end": file.dictionary_end}
        head["checksum"] = xxhash.xxh3_64_hexdigest(index.data)
        # another process may be writing it now; where it cannot be kept, each opening makes it anew
        with suppress(InputError, OSError):
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with atomic_path(place) as partial, open(partial, "wb") as output:
                output.write(json.dumps(head).encode().ljust(_HEAD_BYTES))
                output.write(index.data)
    return file, index


def _read(place: Path, state: dict[str, Any]) -> tuple[int, np.ndarray]:
    """Where the dictionary of a file in this state ends, and its index, kept at `place`."""
    with open(place, "rb") as file:
        head = json.loads(file.read(_HEAD_BYTES))
    index = np.memmap(place, ENTRY, mode="r", offset=_HEAD_BYTES)
    end = head["dictionary_end"]
    if (head["version"], head["file"], head["checksum"]) != (_VERSION, state, xxhash.xxh3_64_hexdigest(index.data)):
        raise ValueError(f"{place} is damaged, or of another state of the file")
    if not 0 <= index["offset"].min() <= index["offset"].max() < end:  # lookup.cpp reads there
        raise ValueError(f"{place} leads out of the dictionary")
    return end, index
