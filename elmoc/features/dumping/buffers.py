"""Buffers: how the sentences of a dump are put together that are encoded and written at a time.

Where a buffer begins and ends depends on the sentences before it alone, not on where an interrupted dump goes on: each
batch is then made of the same sentences, and its numbers are the same to the last bit.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, Protocol

from torch import Tensor

from elmoc.batches import length_bucketed
from elmoc.errors import InputError, describe_error, shortened
from elmoc.features.dumping.input import Line
from elmoc.model import WINDOW_WORDS, CarriedState, ElmoC, StateSpan
from elmoc.word_vectors.rows import SentenceRows


@dataclass(frozen=True)
class Buffer:
    """Sentences that are encoded together.

    first: the number of the first one.
    goes_on: it is a further part of a document, into which the state is carried.
    rows: the words, looked up; None where they are looked up when they are read.
    written: all of it is in the file already, and need not be encoded.
    """

    first: int
    lines: list[Line]
    goes_on: bool = False
    rows: SentenceRows | None = None
    written: bool = False

    @property
    def words(self) -> int:
        """How many words it has."""
        return sum(len(line.sentence.tokens) for line in self.lines)

    @property
    def tokens(self) -> list[list[str]]:
        """The words of each sentence."""
        return [list(line.sentence.tokens) for line in self.lines]

    @property
    def where(self) -> str:
        """Its lines in the file, e.g. `line 7` or `lines 7 to 90`."""
        first, last = self.lines[0].where, self.lines[-1].where
        return first if first == last else f"lines {first.removeprefix('line ')} to {last.removeprefix('line ')}"


class Encoded(NamedTuple):
    """Sentences with what is kept of their layer states."""

    first: int
    lines: list[Line]
    states: list[Tensor]


class EncodedPiece(NamedTuple):
    """A piece of the layer states of a sentence; None after the last of them."""

    first: int
    line: Line
    piece: StateSpan | None


Progress = Callable[[int], object]
Select = Callable[[Tensor], Tensor]


class Reading(Protocol):
    """How the sentences of a dump are read: each for itself, or with the state carried."""

    def buffers(self, lines: Iterable[Line], *, first: int, written: int) -> Iterator[Buffer]:
        """The buffers of lines, of which the first is sentence `first`, and those below `written` are in the file."""
        ...

    def encode(self, buffer: Buffer, progress: Progress) -> Iterator[Encoded | EncodedPiece]:
        """The layer states of a buffer that is not written; every buffer has to be given, in order."""
        ...


@dataclass(frozen=True)
class SeparateReading:
    """Every sentence is read from zero state.

    words: of a buffer at most, but for the last of its sentences.
    batch_words, batch_size: of a batch at most.
    select: what is kept of layer states [L + 1, n, columns].
    """

    model: ElmoC
    words: int
    batch_words: int
    batch_size: int
    select: Select

    def buffers(self, lines: Iterable[Line], *, first: int, written: int) -> Iterator[Buffer]:
        for buffer in self._collected(lines, first):
            done = buffer.first + len(buffer.lines) <= written
            rows = None if done or is_long(buffer.lines[0]) else self.model.look_up(buffer.tokens)
            yield Buffer(buffer.first, buffer.lines, rows=rows, written=done)

    def _collected(self, lines: Iterable[Line], first: int) -> Iterator[Buffer]:
        collected: list[Line] = []
        words = 0
        for line in lines:
            if collected and (words >= self.words or is_long(line) or is_long(collected[0])):
                yield Buffer(first, collected)
                first, collected, words = first + len(collected), [], 0
            collected.append(line)
            words += len(line.sentence.tokens)
        if collected:
            yield Buffer(first, collected)

    def encode(self, buffer: Buffer, progress: Progress) -> Iterator[Encoded | EncodedPiece]:
        if buffer.rows is None:
            yield from _encoded_pieces(self.model, buffer.first, buffer.lines[0], {}, progress, self.select)
        else:
            states = self.model.embed_rows(
                buffer.rows,
                batch_words=self.batch_words,
                batch_size=self.batch_size,
                progress=progress,
                select=self.select,
            )
            yield Encoded(buffer.first, buffer.lines, states)


@dataclass
class CarriedReading:
    """The state is carried from each sentence of a document to the next.

    A buffer holds whole documents, which are read side by side, or a part of one that is too long for a buffer.
    The attributes are those of `SeparateReading`.
    """

    model: ElmoC
    words: int
    batch_words: int
    batch_size: int
    select: Select
    _carried: CarriedState = field(default_factory=dict)

    def buffers(self, lines: Iterable[Line], *, first: int, written: int) -> Iterator[Buffer]:
        for buffer in self._collected(lines, first):
            # the parts of a long document are read again, for the state after them
            done = buffer.first + len(buffer.lines) <= written and len(documents(buffer.lines)) > 1
            if not done:  # look words up now, in this thread
                self.model.look_up(line.sentence.tokens for line in buffer.lines if not is_long(line))
            yield Buffer(buffer.first, buffer.lines, buffer.goes_on, written=done)

    def _collected(self, lines: Iterable[Line], first: int) -> Iterator[Buffer]:
        whole: list[Line] = []
        for part, goes_on, ends in self._parts(lines):
            if whole and (goes_on or not ends or Buffer(first, whole).words >= self.words):
                yield Buffer(first, whole)
                first, whole = first + len(whole), []
            if ends and not goes_on:
                whole = whole + part
            else:
                yield Buffer(first, part, goes_on)
                first += len(part)
        if whole:
            yield Buffer(first, whole)

    def _parts(self, lines: Iterable[Line]) -> Iterator[tuple[list[Line], bool, bool]]:
        """Documents, or their parts; whether it is a further one, and whether the document ends with it."""
        part: list[Line] = []
        words, goes_on = 0, False
        for line in lines:
            if line.begins and part:
                yield part, goes_on, True
                part, words = [], 0
            goes_on = goes_on and not line.begins
            part.append(line)
            words += len(line.sentence.tokens)
            if words >= self.words or is_long(line):
                yield part, goes_on, False
                part, words, goes_on = [], 0, True
        if part:
            yield part, goes_on, True

    def encode(self, buffer: Buffer, progress: Progress) -> Iterator[Encoded | EncodedPiece]:
        found = documents(buffer.lines)
        if len(found) == 1:
            yield from self._encode_part(buffer, progress)
            return
        states: list[Tensor | None] = [None] * len(buffer.lines)
        longest = [max(len(line.sentence.tokens) for line in buffer.lines[each.start : each.stop]) for each in found]
        for batch in length_bucketed(longest, self.batch_words, self.batch_size):
            tokens = [[line.sentence.tokens for line in buffer.lines[found[i].start : found[i].stop]] for i in batch]
            for index, of_document in zip(batch, self.model.embed_documents(tokens), strict=True):
                states[found[index].start : found[index].stop] = [self.select(each).clone() for each in of_document]
            progress(sum(len(sentence) for document in tokens for sentence in document))
        yield Encoded(buffer.first, buffer.lines, [each for each in states if each is not None])

    def _encode_part(self, buffer: Buffer, progress: Progress) -> Iterator[Encoded | EncodedPiece]:
        """Encode a buffer of one document, or a part of it, and keep the state for the next."""
        if not buffer.goes_on:
            self._carried = {}
        lines = buffer.lines
        short = lines[: len(lines) - is_long(lines[-1])]  # a long line ends its buffer
        if short:
            [states] = self.model.embed_documents([[line.sentence.tokens for line in short]], self._carried)
            progress(sum(len(line.sentence.tokens) for line in short))
            yield Encoded(buffer.first, short, [self.select(each).clone() for each in states])
        if len(short) < len(lines):
            first = buffer.first + len(short)
            yield from _encoded_pieces(self.model, first, lines[-1], self._carried, progress, self.select)


def is_long(line: Line) -> bool:
    """Whether a line is read in windows."""
    return len(line.sentence.tokens) > WINDOW_WORDS


def documents(lines: list[Line]) -> list[range]:
    """The lines of each document."""
    starts = [index for index, line in enumerate(lines) if line.begins or index == 0]
    return [range(start, stop) for start, stop in pairwise([*starts, len(lines)])]


def _encoded_pieces(
    model: ElmoC, first: int, line: Line, carried: CarriedState, progress: Progress, select: Select
) -> Iterator[EncodedPiece]:
    """The pieces of a line, each word of which is read once a direction."""
    done = 0.0
    for piece in model.embed_pieces(line.sentence.tokens, carried):
        before, done = done, done + piece.states.shape[1] / len(model.encoder.directions)
        progress(int(done) - int(before))
        yield EncodedPiece(first, line, piece._replace(states=select(piece.states)))
    yield EncodedPiece(first, line, None)


def refuse_unknown(model: ElmoC, name: str, buffer: Buffer) -> None:
    """Raise an `InputError` that names the first word of a buffer without a vector, and its line, if there is one."""
    if buffer.rows is not None and not buffer.rows.unknown:
        return
    for line in buffer.lines:
        for start in range(0, len(line.sentence.tokens), WINDOW_WORDS):
            window = line.sentence.tokens[start : start + WINDOW_WORDS]
            if unknown := model.look_up([window]).unknown:
                word = next(word for word in window if word in unknown)
                raise InputError(
                    f'{name}, {line.where}: the word "{shortened(word)}" has no vector in {model.word_vectors.origin}: '
                    "give vectors that have it, or read such words as zeros with --unknown zero"
                )


@contextmanager
def naming(name: str, buffer: Buffer) -> Iterator[None]:
    """Say in errors of the block which lines they are about."""
    try:
        yield
    except Exception as error:
        raise InputError(f"{name}, {buffer.where}: {describe_error(error)}") from error
