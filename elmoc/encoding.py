"""Encoding: the steps from tokenised sentences to layer states.

`ElmoC` is made of a `SentenceEncoder`. Feature dumps, modules and adapters for other
libraries call its steps themselves: choose layers, look words up, encode.
Letters: B sentences of a batch, T time, L layers, P projection, n words of a sentence,
M units (words or subwords) of all sentences, E width of a word vector.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from elmoc.batches import BATCH_SIZE, BATCH_WORDS, length_bucketed
from elmoc.corpus import BEGIN, END
from elmoc.devices import Precision
from elmoc.encoders import CarriedState
from elmoc.encoders.inference import InferenceEncoder
from elmoc.encoders.pooling import POOLINGS, pooled
from elmoc.errors import InputError, shortened
from elmoc.files.arrays import all_finite
from elmoc.model_directory import ModelDirectory
from elmoc.version import VERSION
from elmoc.word_vectors.sources import WordVectors
from elmoc.word_vectors.subwords import SubwordVectors
from elmoc.word_vectors.transform import SentenceRows, WordRows


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

    Layer states are float32 on the CPU. Where a step finds states that are not finite,
    it raises an `InputError`.

    layers: L + 1, the context-independent layer 0 included.
    width: 2P, the width of a layer state.
    device: where the encoder computes.
    precision: of the factors of matrix products, `float32` or `bf16`.
    pooling: how states of subwords become the state of a word, one of `POOLINGS`; None
        where the model reads words.
    unknown_words: the first word types met until now that have no vector, and are read
        as zeros.
    fingerprint: names the weights of the encoder.
    """

    def __init__(
        self,
        directory: ModelDirectory,
        word_vectors: WordVectors,
        *,
        precision: Precision,
        pooling: str | None,
    ) -> None:
        self._subwords = None
        if isinstance(word_vectors, SubwordVectors):
            self._subwords = word_vectors.subwords
            pooling = pooling or POOLINGS[0]
        if pooling and (pooling not in POOLINGS or self._subwords is None):
            raise InputError(
                f"pooling is {', '.join(POOLINGS)}, for models that read subwords "
                f"alone; not {pooling!r}"
            )
        encoder = directory.encoder
        # Weights are packed for the products of inference once, here.
        self._directory = directory
        self._word_vectors = word_vectors
        self._rows = WordRows(directory.transform, word_vectors)
        self._inference = InferenceEncoder(encoder, precision=precision)
        self.layers = encoder.config.sizes.layers + 1
        self.width = encoder.width
        self.device = self._inference.device
        self.precision = precision
        self.pooling = pooling
        self.unknown_words = self._rows.unknown
        self.fingerprint = encoder.fingerprint()

    @property
    def identity(self) -> dict[str, str]:
        """The names of everything that layer states depend on, as attributes of a
        feature file: this release, weights, word vectors and precision.
        """
        names = {
            "elmoc": VERSION,
            "model": self.fingerprint,
            "word_vectors": self._word_vectors.fingerprint,
            "precision": self.precision,
        }
        # Models of words keep the names that they had before there were subwords.
        if self.pooling is not None:
            names["pooling"] = self.pooling
        packed = self._directory.packed
        if packed is not None:
            names["packed_from"] = packed.model
        return names

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
        if layers == "all":
            return ChosenLayers(known, lambda states: states)
        if layers == "top":
            return ChosenLayers(["top"], lambda states: states[-1])
        if layers == "average":
            return ChosenLayers(["average"], lambda states: states.mean(dim=0))
        names = layers.split(",")
        if not set(names) <= set(known):
            raise InputError(
                "layers (--layers) are all, top, average, or indices from 0 to "
                f"{known[-1]}, such as 0,1; not {shortened(layers)!r}"
            )
        indices = [int(name) for name in names]
        return ChosenLayers(names, lambda states: states[indices])

    def look_up(self, sentences: Iterable[Sequence[str]]) -> SentenceRows:
        """The words of sentences, or their subwords, with `<s>` and `</s>`, as rows of
        a table of vectors.

        It may be called in another thread than the one that encodes.

        Raises:
            InputError: a sentence is a string.
        """
        lists = [_tokens_of(sentence) for sentence in sentences]
        if self._subwords is None:
            return self._rows.look_up([BEGIN, *tokens, END] for tokens in lists)
        split = self._subwords.split(lists)
        units = []
        bounds = []
        for words in split:
            units.append([BEGIN, *chain.from_iterable(words), END])
            counts = [len(word) for word in words]
            bounds.append(torch.tensor([0, *counts]).cumsum(0))
        return self._rows.look_up(units)._replace(bounds=bounds)

    def encode(
        self,
        rows: SentenceRows,
        *,
        batch_words: int = BATCH_WORDS,
        batch_size: int = BATCH_SIZE,
        progress: Callable[[int], object] = lambda words: None,
        select: Callable[[Tensor], Tensor] = lambda states: states,
        boundaries: bool = False,
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
        """
        # Batches are of similar length; each result goes to the place of its sentence.
        states: list[Tensor] = [rows.table] * len(rows.ids)
        lengths_read = [len(ids) - 2 for ids in rows.ids]
        batches = length_bucketed(lengths_read, batch_words, batch_size, padded=False)
        for batch in batches:
            lengths = torch.tensor([len(rows.ids[index]) for index in batch])
            ids = torch.cat([rows.ids[index] for index in batch])
            encoded = self._inference.sentences(rows.table[ids], lengths)
            for index, read in zip(batch, encoded, strict=True):
                kept = self._words(rows, index, read[:, 1:-1])
                if boundaries:
                    kept = torch.cat([read[:, :1], kept, read[:, -1:]], dim=1)
                # A copy of its own, so that the states of the batch can be freed.
                states[index] = self._checked(select(kept).clone())
            progress(sum(rows.words(index) for index in batch))
        return states

    def encode_documents(
        self,
        documents: Sequence[Sequence[Sequence[str]]],
        *,
        carried: CarriedState | None = None,
        batch_words: int = BATCH_WORDS,
        batch_size: int = BATCH_SIZE,
        progress: Callable[[int], object] = lambda words: None,
        select: Callable[[Tensor], Tensor] = lambda states: states,
    ) -> list[list[Tensor]]:
        """Layer states with the state carried from each sentence of a document to the
        next; documents are read side by side.

        Args:
            documents: lists of sentences.
            carried: with one document alone, the states before it, which become those
                after it; by default documents are read from zero state.
            batch_words: words of sentences that are read together, at most.
            batch_size: documents that are read together, at most.
            progress: called with the number of words that have been read.
            select: what is kept of [L + 1, n, 2P].

        Raises:
            InputError: the encoder has no state to carry.
        """
        sizes = self._directory.encoder.config.sizes
        if not sizes.carries_state:
            raise InputError(
                f"the encoder ({sizes.description}) carries nothing from one sentence "
                "to the next"
            )
        states: list[list[Tensor]] = [[] for _ in documents]
        longest = [max(map(len, document), default=0) for document in documents]
        for batch in length_bucketed(longest, batch_words, batch_size):
            # Those with most sentences first: the documents that go on are the first
            # rows of a state.
            order = sorted(batch, key=lambda index: -len(documents[index]))
            state = {} if carried is None else carried
            for number in range(len(documents[order[0]])):
                going_on = [index for index in order if len(documents[index]) > number]
                rows = self.look_up(documents[index][number] for index in going_on)
                lengths = torch.tensor([len(ids) for ids in rows.ids])
                vectors = rows.table[torch.cat(rows.ids)]
                encoded = self._inference.sentences(vectors, lengths, state)
                for place, index in enumerate(going_on):
                    words = self._words(rows, place, encoded[place][:, 1:-1])
                    states[index].append(self._checked(select(words).clone()))
                    progress(rows.words(place))
        return states

    def encode_padded(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Layer states [B, L + 1, T + 2, 2P] of what `SentenceRows.padded` gives, on
        the device and unchecked.
        """
        return self._inference(vectors, lengths)

    def padded_words(
        self, rows: SentenceRows, states: Tensor, lengths: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The layer states of words with `<s>` and `</s>`, and their numbers.

        Args:
            rows: the sentences.
            states: [B, L + 1, T + 2, 2P] of their units, from `encode_padded`.
            lengths: int [B], of units.
        """
        if rows.bounds is None:
            return states, lengths
        assert self.pooling is not None
        words = []
        for each, bounds in zip(states, rows.bounds, strict=True):
            # `<s>` and `</s>` are a unit and a word each.
            ends = [bounds.new_zeros(1), bounds + 1, bounds[-1:] + 2]
            of_words = pooled(each, torch.cat(ends), self.pooling)
            words.append(of_words.transpose(0, 1))  # [n + 2, L + 1, 2P]
        padded = pad_sequence(words, batch_first=True)  # [B, T + 2, L + 1, 2P]
        return padded.transpose(1, 2), torch.tensor([len(each) for each in words])

    def _words(self, rows: SentenceRows, index: int, states: Tensor) -> Tensor:
        """The layer states of the words of a sentence, from those of its units."""
        if rows.bounds is None:
            return states
        assert self.pooling is not None
        return pooled(states, rows.bounds[index], self.pooling)

    def _checked(self, states: Tensor) -> Tensor:
        if not all_finite(states.numpy()):
            raise InputError(
                f"{self._directory.path or 'this model'} gives layer states that are "
                "not finite: numbers of it, or of its word vectors "
                f"({self._word_vectors.origin}), are too large"
            )
        return states


def _tokens_of(sentence: Sequence[str]) -> list[str]:
    # The characters of a string would be taken for tokens.
    if isinstance(sentence, str):
        raise InputError(
            "a sentence is a list of tokens, not the string "
            f"{shortened(sentence)!r}: split it"
        )
    tokens = list(sentence)
    "".join(tokens)  # raises a TypeError where a token is no string
    return tokens
