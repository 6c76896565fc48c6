"""Sources of the inputs of a run: word vectors, and layer states of a feature file or
of a model.

They are opened and checked once for all sentences of a run, and shared by all its
probes. Layer states of another origin need the members of `FeatureStates`: `layers`,
`names`, `width`, `described` and `lookup`.
"""

import os
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

from downstream.inputs.options import SEPARATOR, InputKind, InputOptions
from downstream.inputs.sentence import TaskSentence
from elmoc.errors import InputError, say, shortened
from elmoc.features.dump import dump_features
from elmoc.features.reader import FeatureFile
from elmoc.model import ElmoC
from elmoc.word_vectors.opening import open_word_vectors


class FeatureStates:
    """Layer states that stay in their feature file, which is memory-mapped.

    Args:
        path: of the file.
        sentences: of the run.
        directory: of the model that the file was made with for this run alone.

    Attributes:
        layers: the number of layers.
        names: of the layers.
        width: 2P.
        described: the part of a line of results about the states: the file, or the
            model's directory, and its attributes, such as the fingerprints of the
            model and its word vectors. A foreign file, which names no model, is known
            by its size and time.

    Raises:
        InputError: a sentence that is not in the file, or has another number of tokens
            there.
    """

    def __init__(
        self,
        path: Path,
        *,
        sentences: Sequence[TaskSentence],
        directory: Path | None = None,
    ) -> None:
        self._file = FeatureFile(path)
        self.layers = self._file.layers
        self.names = self._file.layer_names
        self.width = self._file.width
        place = (
            {"file": os.path.realpath(path)}
            if directory is None
            else {"directory": str(directory)}
        )
        self.described = self._file.attributes | {"layers": self.names} | place
        # Files of other tools may name a model, too.
        if "word_vectors" not in self.described:
            status = os.stat(path)
            self.described["file_size"] = status.st_size
            self.described["file_time"] = status.st_mtime_ns
        # A view, or the index of a sentence that has to be read each time.
        self._places: dict[tuple[str, ...], np.ndarray | int] = {}
        # Of sentences with the same words, errors name the last.
        distinct = {sentence.words: sentence for sentence in sentences}
        for words, sentence in distinct.items():
            index = self._file.find(words)
            view = np.zeros(0) if index is None else self._file.view(index)
            is_whole = view.size == self.layers * len(words) * self.width
            is_right = is_whole and view.shape[-2:] == (len(words), self.width)
            if index is None or not is_right:
                raise InputError(
                    f'{path}: the sentence "{shortened(" ".join(words))}" '
                    f"({sentence.file}, line {sentence.line}) is not in the file, or "
                    "of another shape there: "
                    "dump the features of what `python -m downstream sentences` prints"
                )
            # An array with data of its own is a copy, which would fill the memory.
            is_copy = view.flags.owndata or not view.dtype.isnative
            self._places[words] = index if is_copy else view

    def lookup(self, sentences: Sequence[TaskSentence]) -> list[Tensor]:
        """float32 [layers, n, width] for each sentence: views of the file where it
        holds float32.
        """
        states = []
        with warnings.catch_warnings():
            # Nobody writes to the states.
            warnings.filterwarnings(
                "ignore", message="The given NumPy array is not writable"
            )
            for sentence in sentences:
                place = self._places[sentence.words]
                if isinstance(place, int):
                    place = self._file[place].astype(np.float32)
                array = torch.from_numpy(place).float()
                # A file of one layer has arrays [n, width].
                states.append(array.view(self.layers, -1, self.width))
        return states


def model_states(
    path: Path, *, sentences: Sequence[TaskSentence], device: str = "cpu"
) -> FeatureStates:
    """Layer states of a model directory: those of a feature file of float32, which is
    made for this run alone.

    Args:
        path: of the model or run directory.
        sentences: of the run.
        device: where states are computed.
    """
    model = ElmoC.from_pretrained(path, precision="auto", device=device)
    distinct = list(dict.fromkeys(sentence.words for sentence in sentences))
    with TemporaryDirectory() as folder:
        file = Path(folder, "states.h5")
        dump_features(model, [(distinct, file)])
        # The file, which is mapped into memory, can be read after it is removed.
        return FeatureStates(file, sentences=sentences, directory=path)


class WordTable:
    """The vectors of the distinct words of a run, looked up once in each of S sources
    and put side by side.

    Args:
        origins: of the word vectors.
        sentences: of the run.

    Attributes:
        sizes: how many of the E numbers of a vector are from each source.
        vectors: float32 [W, E].
        padded: float32 [W + 1, E]: the same and a row of zeros, which stands for the
            padding after a sentence.
        known: float32 [W + 1, S]: 1 where a source has a vector for the word, 0 where
            it has none (all zeros).
        described: the part of a line of results about the word vectors.
    """

    def __init__(self, *origins: str, sentences: Sequence[TaskSentence]) -> None:
        words = _distinct_words(sentences)
        self._rows = {word: row for row, word in enumerate(words)}
        # Every epoch reads them again.
        self._sentences = {each.words: self._rows_of(each) for each in sentences}
        sources = [open_word_vectors(origin, only=words) for origin in origins]
        self.sizes = [source.size for source in sources]
        self.padded = torch.zeros(len(words) + 1, sum(self.sizes))
        self.vectors = self.padded[:-1]
        blocks = self.vectors.split(self.sizes, dim=1)  # [W, E of a source] each
        for origin, source, block in zip(origins, sources, blocks, strict=True):
            block.copy_(torch.from_numpy(source.lookup(words)))
            if not block.isfinite().all():
                raise InputError(
                    f"{origin} has vectors with numbers that are not finite"
                )
        known = [block.any(dim=1) for block in self.padded.split(self.sizes, dim=1)]
        self.known = torch.stack(known, dim=1).float()
        self.described = {
            "origin": SEPARATOR.join(origins),
            "fingerprint": SEPARATOR.join(source.fingerprint for source in sources),
            "size": sum(self.sizes),
            "words": len(words),
            "words_without_vector": int((~self.vectors.any(dim=1)).sum()),
        }

    def distribution(self, sentences: Sequence[TaskSentence]) -> tuple[Tensor, Tensor]:
        """Mean [S, E] and standard deviation around it [E] of the numbers of the
        distinct words that have a vector.

        Row s of the mean is of source s, and zero in the numbers of the others. All
        numbers of a source have one deviation.
        """
        rows = [self._rows[word] for word in _distinct_words(sentences)]
        blocks = self.vectors[rows].split(self.sizes, dim=1)
        known = [block[block.any(dim=1)] for block in blocks]
        means = [block.mean(dim=0) for block in known]
        pairs = zip(known, means, strict=True)
        deviations = [(block - mean).std().expand_as(mean) for block, mean in pairs]
        return torch.block_diag(*means), torch.cat(deviations)

    def _rows_of(self, sentence: TaskSentence) -> Tensor:
        rows = [self._rows[word] for word in sentence.words]
        return torch.tensor(rows, dtype=torch.int32)

    def rows(self, sentences: Sequence[TaskSentence]) -> Tensor:
        """int32 [B, T]: the row of each word in `padded`."""
        rows = [self._sentences[sentence.words] for sentence in sentences]
        return torch.nn.utils.rnn.pad_sequence(
            rows, batch_first=True, padding_value=len(self._rows)
        )


def _distinct_words(sentences: Sequence[TaskSentence]) -> list[str]:
    """The distinct words of sentences, in the order in which they come first."""
    words = chain.from_iterable(sentence.words for sentence in sentences)
    return list(dict.fromkeys(words))


@dataclass(frozen=True)
class InputSources:
    """The sources of the inputs of a run; None where no probe reads any."""

    words: WordTable | None
    states: FeatureStates | None

    def select(self, kind: InputKind) -> "InputSources":
        """The sources that the `kind` of inputs reads."""
        return InputSources(
            words=self.words if kind.words else None,
            states=self.states if kind.states else None,
        )


def open_sources(
    kinds: Collection[InputKind],
    inputs: InputOptions,
    *,
    sentences: Sequence[TaskSentence],
    device: str = "cpu",
) -> InputSources:
    """Look up what the kinds of inputs read for all sentences of a run, and print what
    it is.

    Args:
        kinds: of inputs.
        inputs: where word vectors and layer states come from.
        sentences: of the run.
        device: where a model computes its layer states.

    Raises:
        InputError: inputs that a kind needs are not given, or cannot be read.
    """
    words: WordTable | None = None
    states: FeatureStates | None = None
    if any(kind.states for kind in kinds):
        given = [each for each in (inputs.features, inputs.model) if each is not None]
        if len(given) != 1:
            raise InputError(
                "inputs with layer states need --features FILE.h5 or --model DIR, one "
                "of them"
            )
        if inputs.features is not None:
            states = FeatureStates(inputs.features, sentences=sentences)
        else:
            states = model_states(given[0], sentences=sentences, device=device)
        say(f"states {given[0]}: {states.layers} layers of {states.width}")
    if any(kind.words for kind in kinds):
        if not inputs.vectors:
            raise InputError("inputs with word vectors need --vectors")
        words = WordTable(*inputs.vectors, sentences=sentences)
        about = words.described
        say(
            f"words  {about['origin']}: {about['size']} dimensions; "
            f"{about['words_without_vector']:,} of {about['words']:,} distinct words "
            "have none"
        )
    return InputSources(words=words, states=states)
