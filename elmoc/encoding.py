"""Encoding: the steps from tokenised sentences to layer states.

`ElmoC` is a `SentenceEncoder`. Feature dumps, modules and adapters for other
libraries call its steps themselves: choose layers, look words up, encode.
Letters: B sentences of a batch, T time, L layers, P projection, n words of a sentence,
M units (words or subwords) of all sentences, E width of a word vector.
"""

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from elmoc.batches import BATCH_SIZE, BATCH_WORDS, length_bucketed
from elmoc.corpus import BEGIN, END
from elmoc.devices import CPU, choose_precision
from elmoc.encoders.inference import InferenceEncoder
from elmoc.encoders.pooling import POOLINGS, pooled
from elmoc.errors import InputError, shortened
from elmoc.features.options import MOST_WORDS
from elmoc.files.arrays import all_finite
from elmoc.files.checksums import fingerprint
from elmoc.model_directory import ModelDirectory
from elmoc.settings import Precision
from elmoc.version import VERSION
from elmoc.word_vectors.sources import WordVectors
from elmoc.word_vectors.subwords import SubwordVectors
from elmoc.word_vectors.transform import SentenceRows, WordRows

# What a list is of, by the number of lists inside one another.
_LEVELS = {1: "words", 2: "sentences"}
_NESTING = (
    "a sentence is a list of strings, such as ['The', 'cat'], and embed_batch takes a "
    "list of sentences"
)


class ChosenLayers(NamedTuple):
    """Layers of an encoder that a user has chosen.

    names: of the layers, as a feature file has them.
    select: takes them from layer states [L + 1, n, 2P], as [layers, n, 2P], or
        [n, 2P] for the top layer and the average.
    """

    names: list[str]
    select: Callable[[Tensor], Tensor]


class SentenceEncoder:
    """A trained encoder with its word vectors, prepared for inference.

    Layer states are float32. Where a step finds states that are not finite, it raises
    an `InputError`.

    layers: L + 1, the context-independent layer 0 included.
    width: 2P, the width of a layer state.
    device: where the encoder computes.
    precision: of the factors of matrix products, `float32`, `bf16` or `int8`.
    asked_precision: that was asked for, which may be `auto`.
    subword_pooling: how states of subwords become the state of a word, one of
        `POOLINGS`; None where the model reads words.
    unknown_words: the first word types met until now that have no vector, and are read
        as zeros.
    fingerprint: names the weights of the encoder.
    """

    def __init__(
        self,
        directory: ModelDirectory,
        word_vectors: WordVectors,
        precision: Precision,
        subword_pooling: str | None,
    ) -> None:
        self._subwords = None
        if isinstance(word_vectors, SubwordVectors):
            self._subwords = word_vectors.subwords
            subword_pooling = subword_pooling or POOLINGS[0]
        if subword_pooling and (
            subword_pooling not in POOLINGS or self._subwords is None
        ):
            raise InputError(
                f"subword_pooling is {', '.join(POOLINGS)}, for models that read "
                f"subwords alone; not {subword_pooling!r}"
            )
        self.directory = directory
        self.word_vectors = word_vectors
        self.encoder = directory.encoder
        self.layers = self.encoder.config.sizes.layers + 1
        self.width = self.encoder.width
        self.asked_precision = precision
        device = next(self.encoder.parameters()).device
        one = self.encoder.direction(self.encoder.directions[0]).encoder
        packed = directory.weight_type == "int8" and one.is_prepared_for("int8")
        self.precision = choose_precision(precision, device, packed=packed)
        self.subword_pooling = subword_pooling
        self.fingerprint = self.encoder.fingerprint()
        # Weights are packed for the products of inference once, here.
        self._inference = InferenceEncoder(self.encoder, precision=self.precision)
        self.device = self._inference.device
        self._rows = WordRows(
            directory.transform, word_vectors, self._inference.read_words
        )
        self.unknown_words = self._rows.unknown
        # `LayerStates` trains the input layer, too: it reads these.
        self._vectors = WordRows(directory.transform, word_vectors)
        self._vectors.unknown = self.unknown_words

    @property
    def full_fingerprint(self) -> str:
        """Names the weights of the encoder, the word vectors and the settings: what
        adapters write into what was trained on a model, to know it again.
        """
        weights = f"{self.fingerprint} {self.word_vectors.fingerprint}"
        return f"{weights} {self.identity['settings']}"

    @property
    def identity(self) -> dict[str, str]:
        """The names of everything that layer states depend on, as attributes of a
        feature file: this release, weights, word vectors and precision.
        """
        settings = self.directory.encoder.config.to_dict() | {"dropout": None}
        transform = self.directory.transform
        names = {
            "elmoc": VERSION,
            "model": self.fingerprint,
            # Weights do not tell clips, residual connections, or heads; dropout is for
            # training alone.
            "settings": fingerprint(
                [repr(settings).encode()]
                # Vectors that are not transformed leave the name as it was.
                + ([] if transform.mean is None else transform.content)
            ),
            "word_vectors": self.word_vectors.fingerprint,
            "precision": self.precision,
            "pooling": self.subword_pooling,
            "packed_from": self.directory.packed_from,
        }
        # A model of words has no pooling, and one that is not packed comes from no
        # other.
        return {name: value for name, value in names.items() if value is not None}

    def choose_layers(self, layers: str | Sequence[int]) -> ChosenLayers:
        """The layers that a user names.

        Args:
            layers: `all`, `top`, `average` (the mean), or indices such as `0,2` or
                [0, 2].

        Raises:
            InputError: the encoder lacks a layer.
        """
        if not isinstance(layers, str):
            layers = ",".join(map(str, layers))
        known = [str(index) for index in range(self.layers)]
        by_name = {
            "all": ChosenLayers(known, lambda states: states),
            "top": ChosenLayers(["top"], lambda states: states[-1]),
            "average": ChosenLayers(["average"], lambda states: states.mean(dim=0)),
        }
        if layers in by_name:
            return by_name[layers]
        names = layers.split(",")
        if not set(names) <= set(known):
            raise InputError(
                "layers (--layers) are all, top, average, or indices from 0 to "
                f"{known[-1]}, such as 0,1; not {shortened(layers)!r}"
            )
        return ChosenLayers(names, lambda states: states[list(map(int, names))])

    def look_up(
        self, sentences: Iterable[Sequence[str]], *, as_vectors: bool = False
    ) -> SentenceRows:
        """The words of sentences, or their subwords, with `<s>` and `</s>`, as rows of
        a table.

        It may be called in another thread than the one that encodes.

        Args:
            sentences: lists of tokens.
            as_vectors: whether rows are word vectors, in place of what `encode` reads.

        Raises:
            InputError: a sentence is no list of strings, or too long.
        """
        rows = self._vectors if as_vectors else self._rows
        lists = list(checked_sentences(sentences))
        if self._subwords is None:
            return rows.look_up([BEGIN, *tokens, END] for tokens in lists)
        split = self._subwords.split(lists)
        units = [[BEGIN, *chain.from_iterable(words), END] for words in split]
        counts = [torch.tensor([0, *map(len, words)], device=CPU) for words in split]
        return rows.look_up(units)._replace(bounds=[each.cumsum(0) for each in counts])

    def encode(
        self,
        rows: SentenceRows,
        *,
        batch_words: int = BATCH_WORDS,
        batch_size: int = BATCH_SIZE,
        progress: Callable[[int], object] = lambda words: None,
        select: Callable[[Tensor], Tensor] = lambda states: states,
        boundaries: bool = False,
        device: torch.device = CPU,
    ) -> list[Tensor]:
        """Layer states of sentences, each read from zero state.

        Args:
            rows: the sentences, from `look_up`.
            batch_words: words a batch at most, but always a sentence.
            batch_size: sentences a batch at most.
            progress: called after each batch with its number of words.
            select: what is kept of [L + 1, n, 2P].
            boundaries: whether the states of `<s>` and `</s>` stand before and behind
                those of the words.
            device: where the states are wanted.
        """
        # Batches are of similar length; each result goes to the place of its sentence.
        states: list[Tensor] = [rows.table] * len(rows.ids)
        lengths = rows.lengths
        for batch in length_bucketed(
            (lengths - 2).tolist(), batch_words, batch_size, padded=False
        ):
            words = rows.table[torch.cat([rows.ids[index] for index in batch])]
            encoded = self._inference.sentences(words, lengths[batch], device=device)
            for index, read in zip(batch, encoded, strict=True):
                own = self.words_of(rows, index, read, boundaries=boundaries)
                states[index] = self._checked(select(own))
            progress(sum(rows.words(index) for index in batch))
        return states

    def words_of(
        self, rows: SentenceRows, index: int, read: Tensor, *, boundaries: bool = False
    ) -> Tensor:
        """The layer states of the words of a sentence, [L + 1, n, 2P].

        Args:
            rows: sentences.
            index: of the sentence.
            read: [L + 1, units + 2, 2P], of its units, `<s>` and `</s>`.
            boundaries: see `encode`.
        """
        words = read[:, 1:-1]
        if rows.bounds is not None and self.subword_pooling is not None:
            words = pooled(words, rows.bounds[index], self.subword_pooling)
        if boundaries:
            words = torch.cat([read[:, :1], words, read[:, -1:]], dim=1)
        return words

    def _checked(self, states: Tensor) -> Tensor:
        """A copy of finite states, so that those of a batch can be freed."""
        own = states.clone(memory_format=torch.contiguous_format)
        if not all_finite(own.cpu().numpy()):
            raise InputError(
                f"{self.directory.path or 'this model'} gives layer states that are "
                "not finite: numbers of it, or of its word vectors "
                f"({self.word_vectors.origin}), are too large"
            )
        return own


def check_level(value: object, level: int, where: str = "") -> None:
    """Check that a value is nested as a sentence, or a list of sentences, is.

    Args:
        value: a list, or anything that is like one.
        level: what it should be a list of, by its place in `_LEVELS`.
        where: what stands before the error.

    Raises:
        InputError: it is something else; it says what was found.
    """
    is_nested = isinstance(value, list | tuple) or (
        isinstance(value, Iterable)
        # The items of a string are letters, those of a table are the names of columns.
        and not isinstance(value, str | bytes | Mapping | Set)
        and 1 <= getattr(value, "ndim", 1) <= level
    )
    if not is_nested:
        raise InputError(
            f"{where}{reprlib.repr(value)} ({type(value).__name__}) is not a list of "
            f"{_LEVELS[level]}: {_NESTING}"
        )


def checked_sentences(sentences: Iterable[Iterable[str]]) -> Iterator[list[str]]:
    """Yield the words of each sentence.

    Raises:
        InputError: the words are no list of strings, or more than `MOST_WORDS`; a word
            is empty, or begins or ends with white space.
    """
    check_level(sentences, 2)
    for number, sentence in enumerate(sentences, 1):
        place = f"sentence {number}: "
        check_level(sentence, 1, place)
        words = list(sentence)
        try:
            # Of all tests for strings the quickest.
            line = " ".join(words)
        except TypeError:
            first = [isinstance(word, str) for word in words].index(False)
            raise InputError(
                f"{place}word {first + 1} of {reprlib.repr(words)} is "
                f"{reprlib.repr(words[first])} ({type(words[first]).__name__}), not a "
                f"string: {_NESTING}"
            ) from None
        # White space within a word may be meant.
        if line.split() != words and not all(
            word and word == word.strip() for word in words
        ):
            raise InputError(
                f"{place}a word of {reprlib.repr(words)} is empty, or begins or ends "
                "with white space: take that out"
            )
        if len(words) > MOST_WORDS:
            raise InputError(
                f"{place}{reprlib.repr(words)} has {len(words):,} words, more than "
                f"{MOST_WORDS:,}: divide it into sentences"
            )
        yield words
