"""scikit-learn: a model as a transformer of raw texts, for pipelines and searches.

    from elmoc.interop.sklearn import ElmocVectorizer
    make_pipeline(ElmocVectorizer("models/english"), LogisticRegression())

Letters: n texts, P projection.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from elmoc.batches import BATCH_SIZE
from elmoc.devices import Device
from elmoc.errors import InputError
from elmoc.model import ElmoC
from elmoc.settings import Precision
from elmoc.text_vectors import check_texts, text_states, tokenised_texts

# Weight a / (a + p) of a word of probability p (Arora et al. 2017, Section 3).
_A = 1e-3
_POOLINGS = ("mean", "max", "sif")


class ElmocVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Raw texts to vectors, float32 [n, 2P], pooled over words and layers.

    A copy, and a pickle, hold the name of the model: it is opened where it is used.

    Args:
        model: a model directory, a run directory, the name of an installed model, or
            one on a hub.
        pooling: `mean` or `max` over the words of a text; or `sif`, the mean weighted
            by how rare a word is in the texts of `fit`, without the direction that
            these have most in common (Arora et al. 2017).
        vectors: where the model's word vectors are, if they have moved.
        device: where the encoder computes.
        precision: of the factors of matrix products.
        batch_size: sentences a batch at most.

    model_name_: the `full_fingerprint` of the model that `fit` has seen.
    word_weights_: of `sif`, of each word of the texts.
    component_: of `sif`, the common direction, float32 [2P].
    """

    def __init__(
        self,
        model: Path | str = "english",
        *,
        pooling: str = "mean",
        vectors: str | None = None,
        device: Device = "cpu",
        precision: Precision = "auto",
        batch_size: int = BATCH_SIZE,
    ) -> None:
        self.model = model
        self.pooling = pooling
        self.vectors = vectors
        self.device = device
        self.precision = precision
        self.batch_size = batch_size

    def fit(self, X: Iterable[str], y: Any = None) -> "ElmocVectorizer":
        """Learn what `sif` needs of the texts; otherwise see that the model is there.

        Raises:
            InputError: the model cannot be opened, or, for `sif`, a text is no string.
        """
        texts = _checked(X)
        elmo = self._open()
        self.model_name_ = elmo.full_fingerprint
        self._n_features_out = elmo.width
        if self.pooling == "sif":
            self.word_weights_ = _sif_weights(elmo, texts)
            vectors = self._weighted(elmo, texts)
            self.component_ = np.linalg.svd(vectors, full_matrices=False)[2][0]
        return self

    def transform(self, X: Iterable[str]) -> np.ndarray:
        """The vectors of texts.

        Raises:
            InputError: the model is another than that of `fit`, or a text is no string.
        """
        check_is_fitted(self, "component_" if self.pooling == "sif" else "model_name_")
        texts = _checked(X)
        elmo = self._open()
        if elmo.full_fingerprint != self.model_name_:
            raise InputError(f"{self.model} is not the model that this was fitted with")
        if self.pooling == "sif":
            vectors = self._weighted(elmo, texts)
            return vectors - np.outer(vectors @ self.component_, self.component_)
        pooling: Any = self.pooling
        return elmo.embed_texts(texts, pooling=pooling, batch_size=self.batch_size)

    def _open(self) -> ElmoC:
        if self.pooling not in _POOLINGS:
            raise InputError(f"pooling is {', '.join(_POOLINGS)}, not {self.pooling!r}")
        return ElmoC.from_pretrained(
            self.model,
            vectors=self.vectors,
            device=self.device,
            precision=self.precision,
        )

    def _weighted(self, elmo: ElmoC, texts: list[str]) -> np.ndarray:
        """The weighted mean of each text; a word that `fit` has not seen weighs 1."""
        vectors = np.zeros((len(texts), elmo.width), dtype=np.float32)
        states = text_states(elmo, texts, batch_size=self.batch_size)
        for vector, own in zip(vectors, states, strict=True):
            weights = [self.word_weights_.get(word, 1.0) for word in own.words]
            summed = np.array(weights, np.float32) @ own.states.mean(dim=0).numpy()
            vector[:] = summed / max(1, len(weights))
        return vectors

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _checked(X: Iterable[str]) -> list[str]:
    """The texts of what scikit-learn is given: a list, or a column of a table.

    Raises:
        InputError: it is a text, a table of several columns, nothing, or empty.
    """
    check_texts(X)
    texts = list(X)
    if not texts:
        raise InputError("there are no texts")
    return texts


def _sif_weights(elmo: ElmoC, texts: list[str]) -> dict[str, float]:
    """a / (a + p) of each word of texts, of which its share is p."""
    sentences = chain.from_iterable(own for _, own in tokenised_texts(elmo, texts))
    counts = Counter(chain.from_iterable(sentences))
    total = counts.total()
    return {word: _A / (_A + count / total) for word, count in counts.items()}
