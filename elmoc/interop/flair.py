"""flair: a model's layer states as `TokenEmbeddings`, on which flair's taggers train
(the extra `flair`).

from elmoc.interop.flair import ElmocEmbeddings
tagger = SequenceTagger(embeddings=ElmocEmbeddings("runs/mine"), ...)

A tagger that flair saves names the model by path and fingerprint and does not hold it.
Import this module before `SequenceTagger.load`, so that flair knows the class.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flair
from flair.data import Sentence
from flair.embeddings import TokenEmbeddings
from flair.embeddings.base import register_embeddings

from elmoc.batches import BATCH_SIZE
from elmoc.errors import InputError
from elmoc.interop.token_vectors import token_vectors
from elmoc.model import ElmoC
from elmoc.settings import Precision


@register_embeddings
class ElmocEmbeddings(TokenEmbeddings):
    """Contextual embeddings of a trained ELMo-C encoder, which stays as it is.

    A token that holds white space gets the mean over its words, and a token of white
    space alone zeros.

    Args:
        model: a model directory or a run directory.
        layers: `all` (concatenated, as in flair's former `ELMoEmbeddings`), `top`,
            `average`, or a list of indices.
        vectors: where the word vectors are now, when they are not where they were in
            training.
        precision: of the factors of matrix products.
        batch_size: sentences a batch at most.
    """

    def __init__(
        self,
        model: Path | str,
        *,
        layers: str | Sequence[int] = "all",
        vectors: str | None = None,
        precision: Precision = "auto",
        batch_size: int = BATCH_SIZE,
    ) -> None:
        self._params: dict[str, Any] = {
            "model": str(model),
            "layers": layers if isinstance(layers, str) else list(layers),
            "vectors": vectors,
            "precision": precision,
            "batch_size": batch_size,
        }
        self._elmo = ElmoC.from_pretrained(
            model, vectors=vectors, device=flair.device, precision=precision
        )
        self._fingerprint = self._elmo.full_fingerprint
        names, _ = self._elmo.choose_layers(layers)
        self._length = len(names) * self._elmo.width
        # flair keeps the vectors of a token under this name
        self.name = (
            f"elmoc-{self._fingerprint}-{self._params['layers']}-{self._elmo.precision}"
        )
        self.static_embeddings = True
        super().__init__()

    @property
    def embedding_length(self) -> int:
        """The width of a token's vector: of all its layers together."""
        return self._length

    def to_params(self) -> dict[str, Any]:
        """What a saved tagger holds of these embeddings."""
        return self._params | {"fingerprint": self._fingerprint}

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> "ElmocEmbeddings":
        """The embeddings of a saved tagger, whose model is loaded.

        Raises:
            InputError: the model is not there, or is another one.
        """
        given = {name: params[name] for name in params if name != "fingerprint"}
        embeddings = cls(**given)
        if embeddings._fingerprint != params["fingerprint"]:
            raise InputError(
                f"{params['model']} is not the model that the tagger was trained on"
            )
        return embeddings

    def _add_embeddings_internal(self, sentences: list[Sentence]) -> None:
        vectors = token_vectors(
            self._elmo,
            sentences,
            self._params["layers"],
            batch_size=self._params["batch_size"],
        )
        for sentence, rows in zip(sentences, vectors, strict=True):
            for token, vector in zip(sentence, rows.to(flair.device), strict=True):
                token.set_embedding(self.name, vector)
