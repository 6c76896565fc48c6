"""States: how the sentences of an input are divided into parts, and the layer states of one part are computed."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from elmoc.encoders.inference import length_bucketed
from elmoc.errors import InputError, reading, shortened
from elmoc.features.input import Line
from elmoc.features.layouts.interface import FeatureShape
from elmoc.features.writer import converted
from elmoc.model import BATCH_SIZE, BATCH_WORDS, WINDOW_WORDS, CarriedState, ElmoC

# Words of a part at most: enough for batches of sentences of similar length.
PART_WORDS = 50_000
# Layer states of a part, in memory while the next part is encoded: 50,000 words at the paper's size, with all layers.
PART_BYTES = 5 << 27

Progress = Callable[[float], object]


@dataclass(frozen=True, kw_only=True)
class DumpOptions:
    """What is dumped of the sentences, and how.

    layers: `all`, `top`, `average`, or indices such as `0,2`.
    dtype: of the numbers in the file, `float32` or `float16`.
    layout, compress, sentence_map, sentence_keys: see `write_features`.
    batch_size, batch_words: sentences and words a batch at most.
    allow_empty: write `[L + 1, 0, 2P]` for an empty line instead of refusing it.
    carry_state: carry the state from each sentence of a document to the next. Blank lines of a text end a document.
    unknown: `zero`, or `error` to refuse words without a vector.
    resume: go on with a dump that was killed.
    command_line: recorded in the file.
    """

    layers: str = "all"
    dtype: str = "float32"
    layout: str = "allennlp"
    compress: bool = False
    sentence_map: bool = True
    sentence_keys: bool = False
    batch_size: int = BATCH_SIZE
    batch_words: int = BATCH_WORDS
    allow_empty: bool = False
    carry_state: bool = False
    unknown: str = "zero"
    resume: bool = False
    command_line: str = ""

    def __post_init__(self) -> None:
        if self.sentence_keys and self.layout != "allennlp":
            raise InputError(f"sentences as keys are for the layout allennlp, not {self.layout}")


def layer_selection(layers: str, count: int) -> tuple[Callable[[Tensor], Tensor], list[str]]:
    """The layers that `layers` names: `all`, `top`, `average`, or indices below `count` such as `0,2`.

    Returns what takes them from layer states [L + 1, n, columns] ([n, columns] of top and average), and their names.
    """
    indices = {str(layer): layer for layer in range(count)}
    if layers == "all":
        return lambda states: states, list(indices)
    if layers == "top":
        return lambda states: states[-1], ["top"]
    if layers == "average":
        return lambda states: states.mean(dim=0), ["average"]
    names = layers.split(",")
    if not set(names) <= indices.keys():
        raise InputError(f"--layers takes indices from 0 to {count - 1}, such as 0,1; not {shortened(layers)!r}")
    chosen = [indices[name] for name in names]
    return lambda states: states[chosen], names


def words_of_a_part(batch_words: int, numbers_a_word: int) -> int:
    """After how many words a part ends."""
    return max(batch_words, min(PART_WORDS, PART_BYTES // (4 * numbers_a_word)))


def divided(lines: Iterable[Line], words: int, *, whole: bool) -> Iterator[list[Line]]:
    """The lines in parts of at least `words` words, but for the last; with `whole`, of whole documents.

    Where they begin and end does not depend on where a dump goes on: each batch is made of the same sentences then, and
    its numbers are the same to the last bit.
    """
    part: list[Line] = []
    count = 0
    for line in lines:
        if count >= words and (line.begins or not whole):
            yield part
            part, count = [], 0
        part.append(line)
        count += len(line.sentence.tokens)
    if part:
        yield part


def count_words(lines: Sequence[Line]) -> int:
    """The number of words of lines."""
    return sum(len(line.sentence.tokens) for line in lines)


def is_long(line: Line) -> bool:
    """Whether a line is read in windows."""
    return len(line.sentence.tokens) > WINDOW_WORDS


@dataclass(frozen=True)
class PartEncoder:
    """Computes the layer states of parts.

    model: the encoder.
    options: what is dumped.
    shape: of all sentences.
    select: what is kept of layer states.
    source: what errors call the input.
    folder: where the states of long lines are while they are computed.
    part_words: a document of more words is read sentence by sentence.
    """

    model: ElmoC
    options: DumpOptions
    shape: FeatureShape
    select: Callable[[Tensor], Tensor]
    source: Path | str
    folder: Path
    part_words: int

    def states(self, lines: list[Line], progress: Progress) -> Iterator[np.ndarray]:
        """The layer states of the lines of a part, in order: float32 [L', n, 2P] or [n, 2P] each, on the CPU."""
        if self.options.unknown == "error":
            self._refuse_unknown(lines)
        if self.options.carry_state:
            yield from self._carried_states(lines, progress)
            return
        short = self.model.look_up(line.sentence.tokens for line in lines if not is_long(line))
        states = iter(
            self.model.embed_rows(
                short,
                batch_words=self.options.batch_words,
                batch_size=self.options.batch_size,
                progress=progress,
                select=self.select,
            )
        )
        for line in lines:
            yield self._long_states(line, None, progress) if is_long(line) else next(states).numpy()

    def _carried_states(self, lines: list[Line], progress: Progress) -> Iterator[np.ndarray]:
        """The same with the state carried from each sentence of a document to the next.

        Documents are read side by side; one that is longer than a part, or has a long line, sentence by sentence.
        """
        documents: list[list[Line]] = []
        for line in lines:
            if line.begins:
                documents.append([])
            documents[-1].append(line)
        beside = [each for each in documents if count_words(each) <= self.part_words and not any(map(is_long, each))]
        longest = [max(len(line.sentence.tokens) for line in each) for each in beside]
        encoded: dict[int, list[Tensor]] = {}  # by the id of a document
        for batch in length_bucketed(longest, self.options.batch_words, self.options.batch_size):
            tokens = [[line.sentence.tokens for line in beside[index]] for index in batch]
            for index, found in zip(batch, self.model.embed_documents(tokens), strict=True):
                encoded[id(beside[index])] = [self.select(each).clone() for each in found]
            progress(sum(count_words(beside[index]) for index in batch))
        for document in documents:
            if id(document) in encoded:
                yield from (states.numpy() for states in encoded.pop(id(document)))
                continue
            carried: CarriedState = {}
            for line in document:
                if is_long(line):
                    yield self._long_states(line, carried, progress)
                    continue
                [[states]] = self.model.embed_documents([[line.sentence.tokens]], carried)
                progress(len(line.sentence.tokens))
                yield self.select(states).clone().numpy()

    def _long_states(self, line: Line, carried: CarriedState | None, progress: Progress) -> np.ndarray:
        """The layer states of a line of any length, in a temporary file that is mapped into memory."""
        with tempfile.TemporaryFile(dir=self.folder) as file:
            shape = self.shape.of(len(line.sentence.tokens))
            states = np.memmap(file, self.shape.dtype, "w+", shape=shape)
        for piece in self.model.embed_pieces(line.sentence.tokens, carried):
            with reading(f"{self.source}, {line.where}"):
                array = converted(self.select(piece.states).numpy(), self.shape.dtype)
            states[..., piece.start : piece.start + array.shape[-2], piece.columns] = array
            progress(array.shape[-2] / len(self.model.encoder.directions))
        return states

    def _refuse_unknown(self, lines: list[Line]) -> None:
        """Raise an `InputError` that names the first word without a vector, and its line."""
        for line in lines:
            if unknown := self.model.look_up([line.sentence.tokens]).unknown:
                word = next(word for word in line.sentence.tokens if word in unknown)
                raise InputError(f'{self.source}, {line.where}: the word "{shortened(word)}" has no vector')
