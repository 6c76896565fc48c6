"""Feature reader: the sentences of a feature file, mapped into memory and read when they are used."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, overload

import numpy as np

from elmoc.errors import InputError, shortened
from elmoc.features.layouts.e2e_coref import group_name
from elmoc.features.linked import LinkedSentences
from elmoc.features.stored import ADVICE, PARTS, STORAGE, ClosedSentences, StoredSentences
from elmoc.files.arrays import all_finite
from elmoc.files.hdf5 import CheckedFile


class FeatureFile:
    """Reads a feature file of any layout: `file[i]` is line i's array, `file.find(words)` the index of a sentence.

    Can be used as a context manager. Several processes may read one file: after a fork both go on, and it is pickled as
    its path, so that another process opens it again. Raises `InputError` for a missing, truncated or foreign file, and
    when a sentence is read that is damaged or has another shape than the file says.
    """

    path: Path
    attributes: dict[str, Any]
    """What the file says of its numbers: the fingerprints of the model and of its word vectors, the layers, …"""
    layout: str
    """The form in which it is on disk, one of `LAYOUTS`."""
    dtype: np.dtype
    """The type of its numbers."""
    layers: int
    """How many layers each sentence has (1 for a file of the top or average layer)."""
    width: int
    """The width of the vectors, 2P."""
    has_map: bool
    """Whether sentences can be found by their words."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        file = CheckedFile(path, advice=ADVICE)
        kind = LinkedSentences if PARTS in file.attributes() else StoredSentences
        self._sentences: LinkedSentences | StoredSentences | ClosedSentences = kind(file)
        said, self.layout = self._sentences.attributes, self._sentences.layout
        self.attributes = {name: value for name, value in said.items() if name not in STORAGE}
        self.layers, self.width, self.dtype = self._sentences.layers, self._sentences.width, self._sentences.dtype
        self.has_map = self._sentences.has_map

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureFile, (self.path.absolute(),)

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self._sentences)

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[index] for index in range(len(self)))

    def __contains__(self, words: object) -> bool:
        """Whether there is a sentence with these words: a list of them, or text with white space between them."""
        return self.find(words) is not None  # type: ignore[arg-type]

    @overload
    def __getitem__(self, index: int | Sequence[str]) -> np.ndarray: ...
    @overload
    def __getitem__(self, index: slice) -> "FeatureSlice": ...
    def __getitem__(self, index: int | slice | Sequence[str]) -> "np.ndarray | FeatureSlice":
        """[L + 1, n, 2P], or [n, 2P] when the file holds one layer, in the type that the file holds.

        By index (from the end, if it is negative), or by words (a list of them, or text with white space between them),
        where a sentence that is not there is a `KeyError`. A slice is a sequence of sentences that are read when they
        are used.

        A sentence of another number of layers or width than the file says, and numbers that are not finite, are an
        `InputError`.
        """
        if isinstance(index, slice):
            return FeatureSlice(self, range(len(self))[index])
        index = self._checked(self._found(index) if isinstance(index, Sequence) else index)
        array = np.array(self._sentences.view(index), order="C")
        self._require_sound(index, array)
        return array

    def view(self, index: int) -> np.ndarray:
        """The same without a copy, read-only: a part of the file itself, mapped into memory.

        It is read when it is used, into memory that all processes share (the system's page cache), and stays good when
        the `FeatureFile` is closed. Its shape and numbers are whatever the file has. Of datasets in chunks (foreign
        files, compressed ones) it is a copy.
        """
        return self._sentences.view(self._checked(index))

    def find(self, words: Sequence[str]) -> int | None:
        """The index of the sentence with these words (a list of them, or text with white space between them), or None.

        The file needs its sentence map. Raises `InputError` for anything else.
        """
        try:
            text = " ".join(words.split() if isinstance(words, str) else words)
        except TypeError:
            raise InputError(
                f"a sentence is found by its list of tokens, which are strings, not by {shortened(repr(words))}"
            ) from None
        return self.sentence_map.get(text)

    @cached_property
    def sentence_map(self) -> dict[str, int]:
        """The index of each sentence by its words with a blank between them; of equal sentences it is the last.

        An `InputError` in a file that has no map.
        """
        return self._sentences.sentence_map()

    @property
    def lines(self) -> dict[str, int]:
        """The same by the text of the sentences, with the white space that is between their words."""
        return self._sentences.lines()

    @property
    def layer_names(self) -> list[str]:
        """What its layers are called: as it says, or, of a foreign file, by their numbers."""
        names = np.atleast_1d(self.attributes.get("layers", []))
        return [str(name) for name in (names if names.shape == (self.layers,) else range(self.layers))]

    @cached_property
    def single(self) -> bool:
        """Whether its arrays are [n, 2P], without an axis of layers."""
        return len(self) > 0 and self.view(0).ndim == 2

    @property
    def compression(self) -> str | None:
        """How the numbers are packed, e.g. `gzip`; None where they are not."""
        return self._sentences.compression

    @cached_property
    def files(self) -> list[Path]:
        """The file, and those that it links to."""
        return self._sentences.files

    @cached_property
    def documents(self) -> Mapping[str, range]:
        """The indices of the sentences of each document, by its key; empty in a file that tells no documents apart."""
        return MappingProxyType(self._sentences.documents() or {})

    def document(self, key: str) -> list[np.ndarray]:
        """The arrays of the sentences of a document; a `KeyError` where there is none of that key.

        `/` in a key may also be `:`, as it is in the e2e-coref layout.
        """
        name = key if key in self.documents else group_name(key)
        if name not in self.documents:
            raise KeyError(f'{self.path} has no document "{shortened(key)}"')
        return [self[index] for index in self.documents[name]]

    @cached_property
    def lengths(self) -> np.ndarray:
        """int64 [sentences]: the number of words of each; the numbers of the sentences are not read."""
        return np.fromiter(map(self._sentences.words, range(len(self))), np.int64, len(self))

    @property
    def tokens(self) -> int:
        """The number of words of all sentences together."""
        return int(self.lengths.sum())

    def check(self, progress: Callable[[int], object] = lambda sentences: None) -> None:
        """Read all of the file, and raise `InputError` for the first sentence that is damaged or not that of the map.

        `progress` is called after each sentence with the number 1.
        """
        lengths = []
        for index in range(len(self)):
            array = self._sentences.view(index)
            self._require_sound(index, array)
            lengths.append(array.shape[-2])
            progress(1)
        self._sentences.check_links()
        if not self.has_map:
            return
        for text, index in self.sentence_map.items():
            words = len(text.split())
            if words != lengths[index]:
                raise InputError(
                    f'{self.path}: its map says that sentence {index} is "{shortened(text)}", of {words} words, but it '
                    f"has {lengths[index]}: {ADVICE}"
                )

    def close(self) -> None:
        """Close the file; views of it stay good, and nothing else is read from it."""
        self._sentences.close()
        self._sentences = ClosedSentences(self.path, self._sentences.files, len(self))

    def __enter__(self) -> "FeatureFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _checked(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        return index if index >= 0 else index + len(self)

    def _found(self, words: Sequence[str]) -> int:
        if (index := self.find(words)) is None:
            text = words if isinstance(words, str) else " ".join(words)
            raise KeyError(f'{self.path} has no sentence "{shortened(text)}"')
        return index

    def _require_sound(self, index: int, array: np.ndarray) -> None:
        layers, *rest = array.shape if array.ndim == 3 else (1, *array.shape)
        if (layers, len(rest), rest[-1:]) != (self.layers, 2, [self.width]):
            shape = " × ".join(map(str, array.shape))
            raise InputError(
                f"{self._sentences.where(index)} has the shape {shape}, not {self.layers} layers of width "
                f"{self.width}: {ADVICE}"
            )
        if not all_finite(array):
            raise InputError(f"{self._sentences.where(index)} has numbers that are not finite: {ADVICE}")


class FeatureSlice:
    """Some sentences of a feature file, in the order of `indices`; each is read when it is used."""

    def __init__(self, file: FeatureFile, indices: range) -> None:
        self.file, self.indices = file, indices

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[np.ndarray]:
        return map(self.file.__getitem__, self.indices)

    @overload
    def __getitem__(self, index: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, index: slice) -> "FeatureSlice": ...
    def __getitem__(self, index: int | slice) -> "np.ndarray | FeatureSlice":
        """The array of the sentence, or fewer sentences."""
        found = self.indices[index]
        return FeatureSlice(self.file, found) if isinstance(found, range) else self.file[found]
