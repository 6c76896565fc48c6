"""Links of a feature file to its parts: what they have to be, whether they are written or checked."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import h5py
import numpy as np

from elmoc.errors import InputError, shortened
from elmoc.features.layouts.allennlp import MAP_KEY, encoded_map
from elmoc.features.layouts.flat import DOCUMENTS, OFFSETS, STATES
from elmoc.features.layouts.interface import Member
from elmoc.features.layouts.keys import in_order, key_of, line_of
from elmoc.features.stored import PART_SENTENCES, PARTS, StoredSentences
from elmoc.files.hdf5 import CheckedFile

_OWN = {PARTS, PART_SENTENCES, "command_line"}
"""Attributes in which a part may differ from the whole."""
OF_A_DUMP = frozenset({"input", "dump"})
"""Attributes that name the dump; a whole has them where all of its parts are of one."""


@dataclass(frozen=True)
class Part:
    """A part of a feature file.

    sentences: what it holds.
    name: its path, relative to the folder of the whole.
    start: the index of its first sentence in the whole.
    """

    sentences: StoredSentences
    name: str
    start: int

    @property
    def source_name(self) -> str:
        """`name` as the source of a virtual dataset, which HDF5 reads as a pattern of `printf`."""
        return self.name.replace("%", "%%")


def attribute_difference(
    found: Mapping[str, Any], expected: Mapping[str, Any], *, ignored: Set[str] = frozenset()
) -> str | None:
    """In words, the first attribute of a part that is not the whole's or another part's; None if there is none."""
    names = (found.keys() | expected.keys()) - _OWN - ignored
    for name in sorted(names):
        if name not in found or name not in expected or not np.array_equal(found[name], expected[name]):
            one, other = (shortened(str(each.get(name, "missing"))) for each in (found, expected))
            return f"{name} is {one} and not {other}"
    return None


def members(part: StoredSentences, start: int, is_taken: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """The datasets of a part's sentences, or groups of its documents: the name of each in the part, and in the whole.

    Args:
        part: of a layout that has them.
        start: the index of its first sentence in the whole.
        is_taken: whether the whole has that name already, so that a key of the same words becomes another.
    """
    if part.member is Member.DOCUMENT:
        for name in in_order(part.file):
            yield name, name
    elif part.attributes.get("sentence_keys"):
        for key in in_order(part.file):
            yield key, key_of(line_of(key), is_taken)
    else:
        for index in range(len(part)):
            yield str(index), str(start + index)


def has_map_dataset(sentences: StoredSentences) -> bool:
    """Whether the map is a dataset; where the keys are sentences, one may have its name."""
    return sentences.has_map and not sentences.attributes.get("sentence_keys")


def joined_map(parts: Sequence[Part]) -> bytes | None:
    """The JSON of the map of all sentences; None unless each part has a map."""
    if not all(has_map_dataset(part.sentences) for part in parts):
        return None
    lines = joined((part.start, part.sentences.lines()) for part in parts)
    return encoded_map(sorted(lines.items(), key=itemgetter(1)))


def joined(maps: Iterable[tuple[int, Mapping[str, int]]]) -> dict[str, int]:
    """One map of all sentences: `maps` are those of the parts, each with the index of the part's first sentence."""
    return {text: start + index for start, own in maps for text, index in own.items()}


def joined_documents(parts: Sequence[Part]) -> dict[str, range] | None:
    """The sentences of each document by its key; None where a part does not tell documents apart.

    Raises an `InputError` for a document that is in two parts.
    """
    found: dict[str, range] = {}
    for part in parts:
        if (documents := part.sentences.documents()) is None:
            return None
        for key, own in documents.items():
            if key in found:
                raise InputError(
                    f'{part.sentences.path} has the document "{shortened(key)}", which another part has, too: dump all '
                    "of its sentences into one part"
                )
            found[key] = range(part.start + own.start, part.start + own.stop)
    return found


def joined_sizes(parts: Sequence[Part]) -> bytes | None:
    """The JSON of how many sentences each document has, in the flat layout; None without documents."""
    documents = joined_documents(parts)
    if documents is None:
        return None
    return json.dumps({key: len(indices) for key, indices in documents.items()}, ensure_ascii=False).encode()


def rows_of(parts: Sequence[Part], offsets: np.ndarray) -> Iterator[tuple[Part, tuple[int, int]]]:
    """Where the states of each part begin and end in the whole, in the flat layout with these offsets."""
    for part in parts:
        yield part, (int(offsets[part.start]), int(offsets[part.start + len(part.sentences)]))


def joined_offsets(parts: Sequence[Part]) -> np.ndarray:
    """int64 [sentences + 1]: the offsets of all sentences in the flat layout."""
    lengths = [np.diff(part.sentences.file[OFFSETS][()]) for part in parts]
    return np.concatenate([np.zeros(1, "<i8"), np.cumsum(np.concatenate(lengths), dtype="<i8")])


def check_links(whole: CheckedFile, parts: Sequence[Part]) -> None:
    """Raise an `InputError` unless the links of a file, which other readers follow, lead to what its parts have."""
    names = ", ".join(part.sentences.path.name for part in parts)
    with whole.damage(f"has links that are not those to its parts ({shortened(names)})"):
        if parts[0].sentences.member is Member.ALL:
            _check_rows(whole, parts)
        else:
            _check_members(whole, parts)


def _check_members(whole: CheckedFile, parts: Sequence[Part]) -> None:
    seen: set[str] = set()
    for part in parts:
        for source, target in members(part.sentences, part.start, seen.__contains__):
            seen.add(target)
            if whole.external_link(target) != (part.name, f"/{source}"):
                raise ValueError(f'"{shortened(target)}" does not lead to "{shortened(source)}" of {part.name}')
    lines = joined_map(parts)
    if lines is not None:
        _compare_text(whole, MAP_KEY, lines)
    if len(whole) != len(seen) + (lines is not None):
        raise ValueError("there are more of them")


def _check_rows(whole: CheckedFile, parts: Sequence[Part]) -> None:
    offsets = joined_offsets(parts)
    if not np.array_equal(whole[OFFSETS][()], offsets):
        raise ValueError(f"its {OFFSETS} are not those of the parts")
    expected = [(part.source_name, STATES, *rows) for part, rows in rows_of(parts, offsets) if rows[0] < rows[1]]
    found = []
    for source in h5py.Dataset(h5py.h5d.open(whole.id, STATES.encode())).virtual_sources():
        (first, *_), (last, *_) = source.vspace.get_select_bounds()
        found.append((source.file_name, source.dset_name, first, last + 1))
    if found != expected:
        raise ValueError(f"its {STATES} are not those of the parts")
    _compare_text(whole, DOCUMENTS, joined_sizes(parts))


def _compare_text(whole: CheckedFile, name: str, expected: bytes | None) -> None:
    if (whole[name][0] if name in whole else None) != expected:
        raise ValueError(f"its {name} are not those of the parts")
