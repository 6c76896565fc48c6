"""The sentence encoder: tokenised sentences to layer states, by a trained encoder with its word vectors."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from elmoc.corpus import BEGIN, END
from elmoc.devices import checked_device
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.errors import InputError, shortened
from elmoc.files.arrays import all_finite
from elmoc.files.checksums import fingerprint
from elmoc.model_directory import ModelDirectory, read_model_directory
from elmoc.version import VERSION
from elmoc.word_vectors.sources import VectorSource, WordVectors, open_word_vectors
from elmoc.word_vectors.transform import VectorTransform

_GIVE_THOSE = "give the word vectors that it was trained with, wherever they are now"


class SentenceEncoder:
    """A trained encoder with its word vectors: tokenised sentences in, layer states out.

    Every sentence is read from zero state between `<s>` and `</s>`, so its vectors do not depend on what stands
    around it.
    """

    def __init__(
        self,
        *,
        encoder: BidirectionalEncoder,
        transform: VectorTransform,
        word_vectors: WordVectors,
        fingerprint: str,
        origin: str = "this model",
    ) -> None:
        self.origin = origin
        self.encoder = encoder.eval()
        self.transform = transform
        self.word_vectors = word_vectors
        self.fingerprint = fingerprint

    @property
    def layers(self) -> int:
        """L + 1: the layers of a layer state, the context-independent layer 0 included."""
        return self.encoder.config.sizes.layers + 1

    @property
    def width(self) -> int:
        """2P: the width of a layer state."""
        return self.encoder.width

    @property
    def device(self) -> torch.device:
        """Where the encoder computes."""
        return next(self.encoder.parameters()).device

    def describe(self) -> dict[str, str]:
        """What names it in the attributes of a feature file: this release, and the weights and word vectors."""
        return {"elmoc": VERSION, "model": self.fingerprint, "word_vectors": self.word_vectors.fingerprint}

    def layer_states(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        batch_words: int = 4096,
        batch_size: int = 256,
        progress: Callable[[int], object] = lambda words: None,
    ) -> list[Tensor]:
        """Layer states of tokenised sentences.

        Args:
            sentences: lists of tokens; an empty sentence is fine.
            batch_words: padded words a batch at most.
            batch_size: sentences a batch at most.
            progress: called after each batch with its number of words.

        Returns:
            For each sentence, float32 [L + 1, n, 2P] on the CPU, layer 0 first; `[:, i]` belongs to its i-th token.

        Raises:
            InputError: numbers of the model or its word vectors are so large that states are not finite.
        """
        states: list[Tensor | None] = [None] * len(sentences)
        table, rows = self._vectors(sentences)
        for batch in length_bucketed([len(sentence) for sentence in sentences], batch_words, batch_size):
            lengths = torch.tensor([len(rows[index]) for index in batch])
            ids = torch.nn.utils.rnn.pad_sequence([rows[index] for index in batch], batch_first=True)  # [B, T]
            with torch.inference_mode():
                output = self.encoder(table[ids].to(self.device), lengths.to(self.device)).cpu()  # [B, L+1, T, 2P]
            for index, length, sentence_states in zip(batch, lengths.tolist(), output, strict=True):
                state = states[index] = sentence_states[:, 1 : length - 1].clone()
                if not all_finite(state.numpy()):
                    raise InputError(
                        f"{self.origin} gives layer states that are not finite: numbers of it, or of its word vectors "
                        f"({self.word_vectors.origin}), are too large; they may be damaged: export it again"
                    )
            progress(int(lengths.sum()) - 2 * len(batch))
        return [state for state in states if state is not None]

    def _vectors(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, list[Tensor]]:
        """The vectors of the distinct words [U, E], and for each sentence its rows, `<s>` and `</s>` included."""
        words: dict[str, int] = {}
        rows = [
            torch.tensor([words.setdefault(word, len(words)) for word in (BEGIN, *sentence, END)])
            for sentence in sentences
        ]
        table = self.transform.lookup(list(words), self.word_vectors)
        return torch.from_numpy(np.ascontiguousarray(table)), rows


def load_model(path: Path | str, *, vectors: str | None = None, device: str = "cpu") -> SentenceEncoder:
    """Load a model directory, or a run directory's model, with its word vectors.

    Args:
        path: the directory.
        vectors: where the word vectors are now, when they are not where they were in training.
        device: where the encoder computes, e.g. `cuda:0`.

    Raises:
        InputError: the directory or the word vectors are missing, damaged, or not those the model was trained with.
    """
    model = read_model_directory(path, fast=True)
    encoder = model.encoder.to(checked_device(device))
    return SentenceEncoder(
        encoder=encoder,
        transform=model.transform,
        word_vectors=open_model_vectors(model, vectors),
        fingerprint=model_fingerprint(encoder),
        origin=str(path),
    )


def open_model_vectors(model: ModelDirectory, override: str | None) -> WordVectors:
    """Open the word vectors that a model reads: `override`, else bundled in its directory, else where they were."""
    source = model.word_vectors
    bundled = None if model.path is None else model.path / Path(source.origin).name
    if override is not None:
        origin = override
    elif bundled is not None and bundled.exists():
        origin = str(bundled)
    else:
        origin = source.origin
        if not origin.startswith("random:") and not Path(origin).exists():
            raise InputError(
                f"the word vectors {origin}, which {model.path or 'this model'} reads, are not there: say where they "
                "are now with --vectors (load_model(..., vectors=...))"
            )
    try:
        vectors = open_word_vectors(origin)
        check_vectors(vectors, source)
    except InputError as error:
        if override is not None or model.path is None:
            raise
        raise InputError(f"the word vectors of {model.path} cannot be used: {error}") from None
    return vectors


def check_vectors(vectors: WordVectors, source: VectorSource) -> None:
    """Raise an `InputError` unless `vectors` are the ones that `source` names."""
    if vectors.size != source.size:
        raise InputError(
            f"{vectors.origin} has {vectors.size} dimensions, but the model reads {source.size}: {_GIVE_THOSE}"
        )
    if vectors.fingerprint != source.fingerprint:
        raise InputError(
            f"{vectors.origin} (fingerprint {vectors.fingerprint}) are not the word vectors of this model "
            f"({source.origin}, fingerprint {shortened(source.fingerprint)}): {_GIVE_THOSE}"
        )


def model_fingerprint(encoder: BidirectionalEncoder) -> str:
    """A content hash of the encoder's weights."""
    return fingerprint(
        *(
            name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes()
            for name, tensor in sorted(encoder.weights().items())
        )
    )


def length_bucketed(lengths: Sequence[int], batch_words: int, batch_size: int) -> Iterator[list[int]]:
    """Indices of sentences in batches of similar length, longest first.

    A batch holds at most `batch_words` padded words (boundaries included) and `batch_size` sentences, but always one.
    """
    batch: list[int] = []
    longest = 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        longest = longest or lengths[index] + 2
        if batch and ((len(batch) + 1) * longest > batch_words or len(batch) == batch_size):
            yield batch
            batch, longest = [], lengths[index] + 2
        batch.append(index)
    if batch:
        yield batch
