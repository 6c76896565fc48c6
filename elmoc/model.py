"""ElmoC: a trained encoder with its word vectors, which turns tokenised sentences into
layer states.

Letters: n words of a sentence, L layers, P projection.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from torch import Tensor

from elmoc.batches import BATCH_SIZE, buffered
from elmoc.devices import Device, checked_device
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.encoding import SentenceEncoder, checked_sentences
from elmoc.errors import InputError, reading
from elmoc.model_directory import (
    ModelDirectory,
    open_model_vectors,
    read_model_directory,
    write_model_directory,
)
from elmoc.settings import Precision
from elmoc.sharing.hub import download_model, is_hub_name
from elmoc.sharing.trainings import training_words
from elmoc.text_vectors import TextPooling, TextStates, pooled_texts, text_states
from elmoc.word_vectors.sources import WordVectors


class ElmoC(SentenceEncoder):
    """A trained encoder with its word vectors: tokenised sentences in, layer states
    out.

    Every sentence is read from zero state between `<s>` and `</s>`, so its vectors do
    not depend on the sentences around it. Layer states are float32 [L + 1, n, 2P] on
    the CPU, layer 0 first; `[:, i]` belongs to the i-th token. States that are not
    finite are an `InputError`.

    encoder: the trained encoder; its weights must not change.
    layers: L + 1, the context-independent layer 0 included.
    width: 2P, the width of a layer state.
    device: where the encoder computes.
    precision: of the factors of matrix products, `float32`, `bf16` or `int8`.
    fingerprint: names the weights of the encoder.
    unknown_words: the first word types met until now that have no vector, and are read
        as zeros.
    training_words: the number of words that the encoder has read in training, by its
        record; None where that does not say.
    """

    def __init__(
        self,
        directory: ModelDirectory,
        word_vectors: WordVectors,
        precision: Precision = "float32",
        subword_pooling: str | None = None,
    ) -> None:
        super().__init__(directory, word_vectors, precision, subword_pooling)
        with reading(f"the training record of {directory.path or 'this model'}"):
            self.training_words = training_words(directory.training)

    @classmethod
    def from_pretrained(
        cls,
        path: Path | str,
        *,
        vectors: str | None = None,
        device: Device = "cpu",
        precision: Precision = "auto",
        revision: str | None = None,
        subword_pooling: str | None = None,
    ) -> "ElmoC":
        """Load a model directory, or a run directory's model, with its word vectors.

        Args:
            path: the directory, or where there is none the name of an installed model,
                such as `english`, or of one on a hub: `OWNER/NAME`,
                `OWNER/NAME@REVISION`.
            vectors: where the word vectors are now, when they are not where they were
                in training.
            device: where the encoder computes, e.g. `cuda:0`; see `checked_device`.
            precision: of the factors of matrix products: `float32`, `bf16`, `int8`
                (for the CPU: faster, less precise), or `auto`: the fastest that is
                precise enough, see `choose_precision`.
            revision: of a model on a hub.
            subword_pooling: how the state of a word is made, where the model reads
                subwords: the state of its `first` unit (the default) or its `last`, or
                the `mean` of all.

        Raises:
            InputError: directory or word vectors are missing or damaged, or the word
                vectors are not those of training.
        """
        chosen = checked_device(device)
        if revision is not None:
            path = f"{path}@{revision}"
        if is_hub_name(path):
            path = download_model(str(path))
        # The fast recurrence is for those who train it further (`LayerStates`).
        directory = read_model_directory(path, fast=True, output_layers=False)
        directory.encoder.to(chosen)
        return cls(
            directory,
            open_model_vectors(directory, vectors),
            precision,
            subword_pooling,
        )

    def save_pretrained(
        self, path: Path | str, *, bundle_vectors: bool = False
    ) -> None:
        """Write the model directory, as it can be shared: it has the names of files,
        and not where they are on this machine. One that exists already is replaced only
        by a whole one.

        Word vectors that are neither in the directory nor beside it are given by
        `vectors` when the model is opened.

        Args:
            path: the directory.
            bundle_vectors: copy the file of word vectors, too, so that the directory is
                all that it takes to use the model, e.g. on a hub.

        Raises:
            InputError: there is a directory of another kind; or word vectors that were
                joined are to be copied, which are several files.
        """
        # Word vectors without a file are part of the directory in any case.
        file = Path(self.word_vectors.origin)
        if bundle_vectors and file.suffix == ".json":
            raise InputError(
                f"{file} joins several files of word vectors: `elmoc pack` makes one "
                "directory of the model and all of them"
            )
        write_model_directory(
            path,
            self.directory.without_paths(),
            vectors=file if bundle_vectors and file.is_file() else None,
        )

    def to(self, device: Device) -> "ElmoC":
        """The model on another device, as a copy.

        Raises:
            InputError: the device is not there, or does not compute in the precision.
        """
        chosen = checked_device(device)
        if chosen == self.device:
            return self
        return with_encoder(self, deepcopy(self.encoder).to(chosen))

    def embed(self, tokens: Sequence[str]) -> Tensor:
        """Layer states [L + 1, n, 2P] of one sentence, which may be empty."""
        [states] = self.embed_batch([tokens])
        return states

    def embed_batch(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        batch_size: int = BATCH_SIZE,
    ) -> list[Tensor]:
        """Layer states of sentences, one tensor each.

        Args:
            sentences: lists of tokens.
            batch_size: sentences a batch at most.
        """
        return self.encode(self.look_up(sentences), batch_size=batch_size)

    def embed_sentences(
        self, sentences: Iterable[Sequence[str]], *, batch_size: int = BATCH_SIZE
    ) -> Iterator[Tensor]:
        """Yield the layer states of any number of sentences in their order, in bounded
        memory.
        """
        # An empty sentence counts as a word: any number of them may follow each other.
        for buffer in buffered(
            checked_sentences(sentences), lambda words: max(1, len(words))
        ):
            yield from self.embed_batch(buffer, batch_size=batch_size)

    @overload
    def embed_texts(
        self,
        texts: Iterable[str],
        *,
        pooling: TextPooling = "mean",
        batch_size: int = BATCH_SIZE,
        show_progress: bool = False,
    ) -> np.ndarray: ...

    @overload
    def embed_texts(
        self,
        texts: Iterable[str],
        *,
        pooling: None,
        batch_size: int = BATCH_SIZE,
        show_progress: bool = False,
    ) -> list[TextStates]: ...

    def embed_texts(
        self,
        texts: Iterable[str],
        *,
        pooling: TextPooling | None = "mean",
        batch_size: int = BATCH_SIZE,
        show_progress: bool = False,
    ) -> np.ndarray | list[TextStates]:
        """One vector for each raw text, float32 [N, 2P], or the states of its words.

        A text is divided into sentences and words as the text of the model was
        (`elmoc/text/tokenizer.py`). One without words is zeros.

        Args:
            texts: N strings, of any number of sentences each.
            pooling: of the words of a text, `mean` or `max`, of the mean over the
                layers; None leaves the words as they are, as a `TextStates` each.
            batch_size: sentences a batch at most.
            show_progress: whether a bar counts the texts.

        Raises:
            InputError: a text is no string, or spaces do not divide it into words.
        """
        if pooling is None:
            return list(
                text_states(
                    self, texts, batch_size=batch_size, show_progress=show_progress
                )
            )
        return pooled_texts(
            self, texts, pooling, batch_size=batch_size, show_progress=show_progress
        )

    def __repr__(self) -> str:
        sizes = self.encoder.config.sizes
        read = self.training_words
        words = "an unknown number of" if read is None else f"{read:,}"
        name = self.directory.training.get("name") or self.directory.path
        return (
            f"<ElmoC {name}, {self.fingerprint}: {words} words read in training\n"
            f" {sizes.description}; layer states [{self.layers}, n, {self.width}]\n"
            f" {self.precision} on {self.device}>"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> "ElmoC":
        # Who copies a network with this model in it (PyTorch does for a stack of equal
        # layers) needs no second copy of several GB of word vectors: the model never
        # changes, and may be shared.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled as its parts: kernels and prepared weights are made again.
        return type(self), (
            self.directory,
            self.word_vectors,
            self.asked_precision,
            self.subword_pooling,
        )


def with_encoder(model: ElmoC, encoder: BidirectionalEncoder, **others: Any) -> ElmoC:
    """The model with other weights in its encoder, and `others` of its directory."""
    return ElmoC(
        replace(model.directory, encoder=encoder, **others),
        model.word_vectors,
        model.asked_precision,
        model.subword_pooling,
    )
