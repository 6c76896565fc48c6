"""ElmoC: a trained encoder with its word vectors, which turns tokenised sentences into
layer states.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmoc.corpus import BEGIN, END
from elmoc.devices import checked_device, checked_precision
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.encoders.inference import (
    CarriedState,
    InferenceEncoder,
    encode_next,
    length_bucketed,
)
from elmoc.encoders.pooling import POOLINGS, pooled
from elmoc.errors import InputError, reading, shortened
from elmoc.files import all_finite
from elmoc.model_directory import (
    ModelDirectory,
    model_files,
    open_model_vectors,
    read_model_directory,
    write_model_directory,
)
from elmoc.sharing.hub import download_model, is_hub_name
from elmoc.sharing.model_card import training_words
from elmoc.text.sentences import buffered
from elmoc.version import VERSION
from elmoc.word_vectors.sources import WordVectors
from elmoc.word_vectors.subwords import SubwordVectors
from elmoc.word_vectors.transform import SentenceRows, WordRows

BATCH_WORDS = 32768
BATCH_SIZE = 2048


class ElmoC:
    """A trained encoder with its word vectors: tokenised sentences in, layer states
    out.

    Every sentence is read from zero state between `<s>` and `</s>`, so its vectors do
    not depend on what stands around it (`embed_documents` carries the state on
    instead). Layer states are float32 [L + 1, n, 2P] on the CPU, layer 0 first; `[:,
    i]` belongs to the i-th token. States that are not finite are an `InputError`.

    encoder: the trained encoder; its weights must not change.
    layers: L + 1, the context-independent layer 0 included.
    width: 2P, the width of a layer state.
    device: where the encoder computes.
    precision: of the factors of matrix products, `float32` or `bf16`.
    unknown_words: the first word types met until now that have no vector, and are read
    as zeros.
    training_words: how many words it has read in training, by its record; None where
    that does not say.
    """

    def __init__(
        self,
        directory: ModelDirectory,
        word_vectors: WordVectors,
        *,
        dtype: torch.dtype = torch.float32,
        pooling: str | None = None,
    ) -> None:
        self.directory = directory
        self.word_vectors = word_vectors
        self._subwords = (
            word_vectors.subwords if isinstance(word_vectors, SubwordVectors) else None
        )
        if pooling is not None and (pooling not in POOLINGS or self._subwords is None):
            raise InputError(
                f"pooling is {', '.join(POOLINGS)}, of models that read subwords alone; not {pooling!r}"
            )
        self.pooling = POOLINGS[0] if pooling is None else pooling
        self._options: dict[str, Any] = {"dtype": dtype, "pooling": pooling}
        self.fingerprint = directory.encoder.fingerprint()
        with reading(f"the training record of {directory.path or 'this model'}"):
            self.training_words = training_words(directory.training)
        self._rows = WordRows(directory.transform, word_vectors)
        self._inference = InferenceEncoder(directory.encoder, dtype=dtype)
        self.encoder = directory.encoder
        self.device = self._inference.device
        self.unknown_words = self._rows.unknown
        self.layers = self.encoder.config.sizes.layers + 1
        self.width = self.encoder.width
        self.precision = "bf16" if dtype == torch.bfloat16 else "float32"

    @classmethod
    def from_pretrained(
        cls,
        path: Path | str,
        *,
        vectors: str | None = None,
        device: str = "cpu",
        precision: str = "float32",
        revision: str | None = None,
        pooling: str | None = None,
    ) -> "ElmoC":
        """Load a model directory, or a run directory's model, with its word vectors.

        Args:
            path: the directory, or where there is none the model's name on a hub:
                `OWNER/NAME`, `OWNER/NAME@REVISION`.
            vectors: where the word vectors are now, when they are not where they were
                in training.
            device: where the encoder computes, e.g. `cuda:0`.
            precision: of the factors of matrix products: `float32`, `bf16`, or `auto`
                (bf16 where the device has it).
            revision: of a model on a hub.
            pooling: what the states of a word are, where the model reads subwords: the
                states of its `first` unit (the default) or its `last`, or the `mean` of
                all.

        Raises `InputError` where directory or word vectors are missing or damaged, or
        other ones than in its training.
        """
        chosen = checked_device(device)
        dtype = checked_precision(precision, chosen)
        if is_hub_name(path):
            path = download_model(
                str(path),
                partial(model_files, with_vectors=vectors is None),
                revision=revision,
            )

        directory = read_model_directory(path, fast=True)
        directory.encoder.to(chosen)
        return cls(
            directory,
            open_model_vectors(directory, vectors),
            dtype=dtype,
            pooling=pooling,
        )

    def save_pretrained(
        self, path: Path | str, *, bundle_vectors: bool = False
    ) -> None:
        """Write the model directory; one that exists already is replaced only by a
        whole one.

        With `bundle_vectors` a copy of the word vectors' file goes with it, so that the
        directory is all that it takes to use the model, e.g. on a hub. Raises
        `InputError` where there is a directory of something else.
        """
        file = Path(self.word_vectors.origin)
        write_model_directory(
            path,
            self.directory,
            vectors=file if bundle_vectors and file.is_file() else None,
        )

    def describe(self) -> dict[str, str]:
        """What names it in the attributes of a feature file: this release, weights,
        word vectors and precision.
        """
        return {
            "elmoc": VERSION,
            "model": self.fingerprint,
            "word_vectors": self.word_vectors.fingerprint,
            "precision": self.precision,
            **({} if self._subwords is None else {"pooling": self.pooling}),
            **(
                {}
                if (packed := self.directory.training.get("packed")) is None
                else {"packed_from": packed["model"]}
            ),
        }

    def with_encoder(self, encoder: BidirectionalEncoder) -> "ElmoC":
        """The model with other weights in its encoder."""
        return ElmoC(
            replace(self.directory, encoder=encoder), self.word_vectors, **self._options
        )

    def to(self, device: torch.device | str) -> "ElmoC":
        """The model on another device, as a copy. Raises `InputError` for a device that
        is not there.
        """
        device = checked_device(str(device))
        return (
            self
            if device == self.device
            else self.with_encoder(deepcopy(self.encoder).to(device))
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> "ElmoC":
        """Itself: nothing of it changes but what it remembers of words."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what it is made from."""
        return partial(type(self), **self._options), (self.directory, self.word_vectors)

    def choose_layers(
        self, layers: str | Sequence[int]
    ) -> tuple[Callable[[Tensor], Tensor], list[str]]:
        """The layers that `layers` names: `all`, `top`, `average` (the mean), or
        indices such as `0,2` or [0, 2].

        Returns what takes them from layer states [L + 1, n, 2P] ([n, 2P] of top and
        average), and their names. Raises `InputError` for layers that it does not have.
        """
        layers = layers if isinstance(layers, str) else ",".join(map(str, layers))
        indices = {str(layer): layer for layer in range(self.layers)}
        if layers == "all":
            return lambda states: states, list(indices)
        if layers == "top":
            return lambda states: states[-1], ["top"]
        if layers == "average":
            return lambda states: states.mean(dim=0), ["average"]
        names = layers.split(",")
        if not set(names) <= indices.keys():
            known = f"all, top, average, or indices from 0 to {self.layers - 1}, such as 0,1"
            raise InputError(
                f"layers (--layers) are {known}; not {shortened(layers)!r}"
            )
        chosen = [indices[name] for name in names]
        return lambda states: states[chosen], names

    def encode(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Layer states [B, L + 1, T + 2, 2P], unchecked, of what `SentenceRows.padded`
        gives, on the device.
        """
        return self._inference(vectors, lengths)

    def of_words(
        self, rows: SentenceRows, states: Tensor, lengths: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Layer states [B, L + 1, T + 2, 2P] of words, and the lengths, from the states
        that `encode` gives.
        """
        if rows.bounds is None:
            return states, lengths
        words = []
        for each, bounds in zip(states, rows.bounds, strict=True):
            with_boundaries = torch.cat(
                [bounds.new_zeros(1), bounds + 1, bounds[-1:] + 2]
            )
            words.append(
                pooled(each, with_boundaries, self.pooling).transpose(0, 1)
            )  # [n + 2, L + 1, 2P]
        padded = torch.nn.utils.rnn.pad_sequence(words, batch_first=True)
        return padded.transpose(1, 2), torch.tensor([len(each) for each in words])

    def embed(self, tokens: Sequence[str]) -> Tensor:
        """Layer states [L + 1, n, 2P] of one sentence; an empty one is fine."""
        [states] = self.embed_batch([tokens])
        return states

    def embed_batch(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        batch_words: int = BATCH_WORDS,
        batch_size: int = BATCH_SIZE,
        progress: Callable[[int], object] = lambda words: None,
    ) -> list[Tensor]:
        """Layer states of sentences, one tensor each.

        Args:
            sentences: lists of tokens.
            batch_words: words a batch at most, but always a sentence.
            batch_size: sentences a batch at most.
            progress: called after each batch with its number of words.
        """
        rows = self.look_up(sentences)
        return self.embed_rows(
            rows, batch_words=batch_words, batch_size=batch_size, progress=progress
        )

    def look_up(self, sentences: Iterable[Sequence[str]]) -> SentenceRows:
        """The words of sentences, or their subwords, with `<s>` and `</s>`, as the rows
        that `embed_rows` reads.

        May be called in another thread than the one that embeds.
        """
        lists = [_tokens_of(sentence) for sentence in sentences]
        if self._subwords is None:
            return self._rows.look_up([BEGIN, *tokens, END] for tokens in lists)
        split = self._subwords.split(lists)
        rows = self._rows.look_up(
            [BEGIN, *(unit for word in words for unit in word), END] for words in split
        )
        counts = [torch.tensor([0, *map(len, words)]) for words in split]
        return rows._replace(bounds=[each.cumsum(0) for each in counts])

    def embed_rows(
        self,
        rows: SentenceRows,
        *,
        batch_words: int = BATCH_WORDS,
        batch_size: int = BATCH_SIZE,
        progress: Callable[[int], object] = lambda words: None,
        select: Callable[[Tensor], Tensor] = lambda states: states,
        boundaries: bool = False,
    ) -> list[Tensor]:
        """`embed_batch` of sentences whose words have been looked up; `select` is what
        is kept of [L + 1, n, 2P].

        With `boundaries` the states of `<s>` and `</s>` stand before and behind the
        states of the words.
        """
        states: list[Tensor] = [rows.table] * len(rows.ids)
        lengths_read = [len(ids) - 2 for ids in rows.ids]
        for batch in length_bucketed(
            lengths_read, batch_words, batch_size, padded=False
        ):
            lengths = torch.tensor([len(rows.ids[index]) for index in batch])
            vectors = rows.table[
                torch.cat([rows.ids[index] for index in batch])
            ]  # [M, E]
            for index, read in zip(
                batch, self._inference.sentences(vectors, lengths), strict=True
            ):
                words = self._pooled(rows, index, read[:, 1:-1])
                kept = (
                    torch.cat([read[:, :1], words, read[:, -1:]], dim=1)
                    if boundaries
                    else words
                )
                states[index] = self._checked(select(kept).clone())
            progress(sum(rows.words(index) for index in batch))
        return states

    def embed_sentences(
        self, sentences: Iterable[Sequence[str]], *, batch_size: int = BATCH_SIZE
    ) -> Iterator[Tensor]:
        """Yield the layer states of any number of sentences in their order, in bounded
        memory.
        """
        for buffer in buffered(
            sentences, lambda sentence: max(1, len(sentence))
        ):  # any number may be empty
            yield from self.embed_batch(buffer, batch_size=batch_size)

    def embed_documents(
        self,
        documents: Sequence[Sequence[Sequence[str]]],
        carried: CarriedState | None = None,
    ) -> list[list[Tensor]]:
        """Layer states with the state carried on from each sentence of a document to
        the next, in both directions.

        So did bilm-tf and AllenNLP's stateful encoder; a sentence's vectors depend on
        those before it then. Documents are read side by side.

        Args:
            documents: lists of sentences.
            carried: with one document alone, the states before it, which become those
                after it; by default documents are read from zero state.

        Raises `InputError` for an encoder that has no state to carry.
        """
        sizes = self.encoder.config.sizes
        if not sizes.carries_state:
            raise InputError(
                f"the encoder ({sizes.description}) carries nothing from one sentence to the next"
            )
        order = sorted(range(len(documents)), key=lambda index: -len(documents[index]))
        states: list[list[Tensor]] = [[] for _ in documents]
        carried = {} if carried is None else carried
        for number in range(max(map(len, documents), default=0)):
            batch = [index for index in order if len(documents[index]) > number]
            rows = self.look_up(documents[index][number] for index in batch)
            encoded = encode_next(self._inference, rows.ids, rows.table, carried)
            for place, (index, sentence) in enumerate(zip(batch, encoded, strict=True)):
                states[index].append(self._checked(self._pooled(rows, place, sentence)))
        return states

    def _pooled(self, rows: SentenceRows, index: int, states: Tensor) -> Tensor:
        """The layer states of words [L + 1, n, columns], from the states of the units
        of a sentence.
        """
        return (
            states
            if rows.bounds is None
            else pooled(states, rows.bounds[index], self.pooling)
        )

    def _checked(self, states: Tensor) -> Tensor:
        if not all_finite(states.numpy()):
            raise InputError(
                f"{self.directory.path or 'this model'} gives layer states that are not finite: numbers of it, or of "
                f"its word vectors ({self.word_vectors.origin}), are too large"
            )
        return states


def _tokens_of(sentence: Sequence[str]) -> list[str]:
    if isinstance(sentence, str):  # whose characters would be tokens
        raise InputError(
            f"a sentence is a list of tokens, not the string {shortened(sentence)!r}: split it"
        )
    tokens = list(sentence)
    "".join(tokens)  # raises TypeError where one is no string
    return tokens
