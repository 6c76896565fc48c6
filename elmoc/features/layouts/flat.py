"""The `flat` layout of feature files: all sentences in one dataset, for training at scale.

A dataset `states`, `[words, L + 1, 2P]` (also for one layer), holds the sentences one behind the other, and a dataset
`offsets`, int64 `[sentences + 1]`, the word at which each begins, and the number of words at its end. Where the
sentences are parts of documents, a dataset `documents`, shape (1,), holds one JSON object {key: number of sentences},
in order. `states` is one piece of the file where the number of words was known beforehand, else in chunks.
"""

import json
from itertools import accumulate, pairwise
from typing import Any

import h5py
import numpy as np
from h5py import h5s

from elmoc.errors import InputError, shortened
from elmoc.features.layouts.datasets import CHUNK_BYTES, Datasets, Form, Slab
from elmoc.features.layouts.interface import LayoutOptions, Rows
from elmoc.features.layouts.sentence import Sentence
from elmoc.features.unfinished.notes import Notes
from elmoc.files.hdf5 import CheckedFile
from elmoc.files.records import parse_json

STATES, OFFSETS, DOCUMENTS = "states", "offsets", "documents"
BLOCK_BYTES = 1 << 23
"""What is gathered before it is written."""


class FlatReader:
    """The `LayoutReader`."""

    has_map = False

    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None:
        self._file = file
        with file.damage(
            f'has no datasets "{STATES}" (words, layers, width) and "{OFFSETS}" that fit each other: it is not a '
            "feature file in the flat layout"
        ):
            self.first = file[STATES]
            shape, dtype = self.first.shape, self.first.dtype
            if dtype.kind != "f" or len(shape) != 3 or 0 in shape[1:]:
                raise ValueError(f'"{STATES}" has the shape {shape} and the type {dtype}')
            self._offsets = self._checked_offsets(shape[0])
        _, self.layers, self.width = shape
        self._is_single = bool(attributes.get("single", False)) and self.layers == 1

    def _checked_offsets(self, words: int) -> np.ndarray:
        dataset = self._file[OFFSETS]
        if dataset.dtype.kind not in "iu" or dataset.ndim != 1 or not len(dataset):
            raise ValueError(f'"{OFFSETS}" has the shape {dataset.shape} and the type {dataset.dtype}')
        offsets = dataset[()].astype(np.int64)
        if offsets[0] != 0 or offsets[-1] != words or (offsets[1:] < offsets[:-1]).any():
            raise ValueError(f'"{OFFSETS}" do not go from 0 to {words}')
        return offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def view(self, index: int, rows: Rows) -> np.ndarray:
        array = rows(STATES, int(self._offsets[index]), int(self._offsets[index + 1]))
        return array[:, 0] if self._is_single else np.moveaxis(array, 1, 0)

    def words(self, index: int) -> int:
        return int(self._offsets[index + 1] - self._offsets[index])

    def lines(self) -> dict[str, int]:
        raise InputError(
            f"{self._file.path}: the flat layout has no map of sentences: ask for them by their number, or write the "
            "allennlp layout"
        )

    def documents(self) -> dict[str, range] | None:
        if DOCUMENTS not in self._file:
            return None
        what = f"{self._file.path}: its {DOCUMENTS}"
        with self._file.damage(f"has {DOCUMENTS} that are damaged"):
            content = self._file[DOCUMENTS][0]
        sizes = parse_json(content, where=what)
        if not isinstance(sizes, dict) or not all(type(size) is int and size >= 0 for size in sizes.values()):
            raise InputError(f"{what} are not a JSON object of keys and numbers of sentences: write the file again")
        if sum(sizes.values()) != len(self):
            raise InputError(f"{what} have {sum(sizes.values())} sentences, but it has {len(self)}: write it again")
        bounds = pairwise(accumulate(sizes.values(), initial=0))
        return {key: range(*each) for key, each in zip(sizes, bounds, strict=True)}


class FlatWriter:
    """The `LayoutWriter`."""

    def __init__(
        self, file: h5py.File, options: LayoutOptions, notes: Notes, memory: dict[str, int | str] | None
    ) -> None:
        self._file, self._notes, self._total = file, notes, options.shape.words
        self._form = Form(options.shape, 1)
        datasets = Datasets(self._form, compress=options.compress)
        self._grows = options.compress or self._total is None
        if memory is None:
            size = CHUNK_BYTES if options.compress else BLOCK_BYTES
            chunk = datasets.chunk_words(size) if self._grows else None
            datasets.create(file.id, STATES, 0 if self._grows else self._total or 0, chunk=chunk)
        self._states = h5py.h5d.open(file.id, STATES.encode())
        self._written = int(memory["words"]) if memory else 0
        self._block = np.empty(self._form.of(datasets.chunk_words(BLOCK_BYTES)), options.shape.dtype)
        self._in_block = 0
        self._sentences = 0
        self._document: str | None = None
        self._documents: dict[str, int] = {}
        for _, document in notes:
            self._count(document)

    def add(self, sentence: Sentence, states: np.ndarray) -> None:
        self._note(sentence)
        rows, done = self._form.arranged(states), 0
        while done < len(rows):
            taken = min(len(rows) - done, len(self._block) - self._in_block)
            self._block[self._in_block : self._in_block + taken] = rows[done : done + taken]
            self._in_block, done = self._in_block + taken, done + taken
            if self._in_block == len(self._block):
                self._write_block()

    def start(self, sentence: Sentence) -> Slab:
        self._note(sentence)
        self._write_block()
        words = len(sentence.tokens)
        return Slab(self._states, self._form, words, first=self._make_room(words))

    def _write_block(self) -> None:
        block = self._block[: self._in_block]
        self._in_block = 0
        if len(block):
            begin = (self._make_room(len(block)), 0, 0)
            there = self._states.get_space()
            there.select_hyperslab(begin, block.shape)
            self._states.write(h5s.create_simple(block.shape), there, block)

    def _make_room(self, words: int) -> int:
        """The row at which the next words go."""
        first, self._written = self._written, self._written + words
        if self._grows:
            self._states.set_extent(self._form.of(self._written))
        elif self._written > (self._total or 0):
            raise ValueError(f"the sentences have more than the {self._total} words that they were to have")
        return first

    def _note(self, sentence: Sentence) -> None:
        self._count(sentence.document)
        self._notes.add((len(sentence.tokens), sentence.document))

    def _count(self, document: str | None) -> None:
        """Count the next sentence, and that of its document; one that is not where it belongs is an `InputError`."""
        if self._sentences and (document is None) == bool(self._documents):
            raise InputError(
                f"sentence {self._sentences + 1:,} belongs to {'no' if document is None else 'a'} document, unlike "
                "those before it: give each sentence a document, or none"
            )
        if document is not None:
            if document in self._documents and document != self._document:
                raise InputError(
                    f'the sentences of the document "{shortened(document)}" do not follow each other, or two documents '
                    "have that key: give each a key of its own, and its sentences one after the other"
                )
            self._documents[document] = self._documents.get(document, 0) + 1
            self._document = document
        self._sentences += 1

    def memory(self) -> dict[str, int | str]:
        self._write_block()
        return {"words": self._written}

    def rewritten(self) -> range:
        offset = self._states.get_offset()
        return range(0) if offset is None else range(offset, offset + self._states.get_storage_size())

    def finish(self) -> None:
        self._write_block()
        if self._total not in (None, self._written):
            raise ValueError(f"the sentences have {self._written} words, not {self._total}")
        lengths = np.fromiter((words for words, _ in self._notes), dtype="<i8", count=self._sentences)
        self._file.create_dataset(OFFSETS, data=np.concatenate([np.zeros(1, "<i8"), np.cumsum(lengths)]))
        if self._documents:
            dataset = self._file.create_dataset(DOCUMENTS, (1,), dtype=h5py.string_dtype("utf-8"))
            dataset[0] = json.dumps(self._documents, ensure_ascii=False)
