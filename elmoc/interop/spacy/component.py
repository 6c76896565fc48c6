"""Component: what `nlp.add_pipe("elmoc")` adds, how it sets `doc.tensor`, and how it is
saved with a pipeline.

A trained pipe of spaCy reads what it computes by the layer `elmoc.TensorTok2Vec.v1`, or
`.v2`, which projects it.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from spacy import registry, util
from spacy.language import Language
from spacy.tokens import Doc, Span
from thinc.api import Maxout, Model, with_array
from thinc.api import chain as chain_layers
from thinc.types import Floats2d

from elmoc.batches import BATCH_SIZE
from elmoc.errors import InputError
from elmoc.interop.spacy.hooks import add_hooks, rows_of
from elmoc.interop.token_vectors import token_vectors
from elmoc.model import ElmoC
from elmoc.model_directory import write_model_directory
from elmoc.settings import Precision

# The attribute of a layer `elmoc.TensorTok2Vec.v1` that holds its pipeline's component.
UPSTREAM = "elmoc"
# Another one, which says what the tensors were of when the pipeline was initialised.
TENSORS = "tensors"


@Language.factory("elmoc", assigns=["doc.tensor", "token.vector"])
class ElmocComponent:
    """The component `elmoc` of a spaCy pipeline, whose model is loaded when it is first
    needed.

    Args:
        nlp: the pipeline.
        name: the component's name in the pipeline.
        model: a model directory, a run directory, or an installed model's name.
        layers: `average` (the mean of all), `top`, `all` (concatenated), or a list of
            indices, such as [0, 2].
        vectors: where the word vectors are now, when they are not where they were in
            training. A pipeline that was saved with a copy of them reads the copy when
            this is not set, or names a file that is not there.
        bundle_vectors: whether `nlp.to_disk` copies them, too, which may be several GB.
        batch_size: sentences a batch of the encoder at most.
        device: where the encoder computes, e.g. `cuda:0`, the number of a GPU, or None
            for the CPU.
        precision: of the factors of matrix products.
        subword_pooling: as of `ElmoC.from_pretrained`.
        memo_words: words of sentences whose vectors are kept in memory, at most: in
            training, epochs after the first need the encoder no more. A pipeline that
            is loaded keeps none.
    """

    # the protocol `ListenedToComponent`, by which spaCy calls `find_listeners` with the
    # components behind this one
    model = None
    listening_components: tuple[str, ...] = ()
    listeners: tuple[Model, ...] = ()

    def __init__(
        self,
        nlp: Language,
        name: str,
        model: str = "english",
        layers: str | list[int] = "average",
        vectors: str | None = None,
        bundle_vectors: bool = False,
        batch_size: int = BATCH_SIZE,
        device: int | str | None = "cpu",
        precision: Precision = "auto",
        subword_pooling: str | None = None,
        memo_words: int = 0,
    ) -> None:
        self.name = name
        self.listener_map: dict[str, Sequence[Model]] = {}
        self._path = model
        self._layers = layers
        self._vectors = vectors
        self._bundle_vectors = bundle_vectors
        self._batch_size = batch_size
        self._options: dict[str, Any] = {
            "device": device,
            "precision": precision,
            "subword_pooling": subword_pooling,
        }
        self._memo_words = memo_words
        self._fingerprint: str | None = None
        self._elmo: ElmoC | None = None

    @property
    def elmo(self) -> ElmoC:
        """The model, which is loaded when it is first asked for.

        Raises:
            InputError: it cannot be loaded, or the pipeline was made with another.
        """
        if self._elmo is None:
            elmo = ElmoC.from_pretrained(
                self._path,
                vectors=self._vectors,
                **self._options,
            )
            if self._fingerprint not in (None, elmo.full_fingerprint):
                raise InputError(
                    f"{self._path} is not the model that the pipeline was made with: "
                    f"name that model by the setting components.{self.name}.model"
                )
            self._elmo = elmo
            # What another model has read is forgotten.
            self._memo: dict[tuple[str, ...], np.ndarray] = {}
            self._words_in_memo = 0
            self._fingerprint = elmo.full_fingerprint
        return self._elmo

    @property
    def width(self) -> int:
        """The width of `doc.tensor`."""
        return len(self.elmo.choose_layers(self._layers).names) * self.elmo.width

    @property
    def tensors(self) -> str:
        """What `doc.tensor` is of: the model, its layers and the subwords of a word."""
        layers = ",".join(self.elmo.choose_layers(self._layers).names)
        pooling = self.elmo.subword_pooling
        pooled = f", {pooling} of subwords" if pooling in ("mean", "last") else ""
        return f"{self.elmo.full_fingerprint}, layers {layers}{pooled}"

    def __call__(self, doc: Doc) -> Doc:
        """Set the tensor of one doc."""
        self.annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Set the tensors of a stream of docs, `batch_size` at a time."""
        for docs in util.minibatch(stream, size=batch_size):
            self.annotate(docs)
            yield from docs

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Set `tensor`, float32 [n, width], and the hooks of docs; each of their
        sentences is read for itself.

        A doc without sentence boundaries is read as one sentence.
        """
        sentences = [
            list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]
            for doc in docs
        ]
        vectors = iter(self._vectors_of(list(chain.from_iterable(sentences))))
        for doc, own in zip(docs, sentences, strict=True):
            rows = islice(vectors, len(own))
            # a doc without sentences has no rows
            doc.tensor = np.concatenate([np.zeros((0, self.width), np.float32), *rows])
            add_hooks(doc)

    def _vectors_of(self, sentences: Sequence[Span]) -> list[np.ndarray]:
        """float32 [n, width] of each sentence: kept, or computed."""
        # When the model is loaded, what is kept of another goes.
        elmo = self.elmo
        names = [tuple(token.text for token in each) for each in sentences]
        unread = {
            name: each
            for name, each in zip(names, sentences, strict=True)
            if name not in self._memo
        }
        vectors = token_vectors(
            elmo, unread.values(), self._layers, batch_size=self._batch_size
        )
        read = {name: rows.numpy() for name, rows in zip(unread, vectors, strict=True)}
        for name, rows in read.items():
            # What is kept first stays: of a text that is read in turn, the words that
            # were used longest ago are those that are needed next.
            if self._words_in_memo + len(name) <= self._memo_words:
                self._memo[name] = rows
                self._words_in_memo += len(name)
        return [read[name] if name in read else self._memo[name] for name in names]

    def find_listeners(self, component: Any) -> None:
        """Give this component to the layers `elmoc.TensorTok2Vec.v1` of another."""
        model = getattr(component, "model", None)
        if isinstance(model, Model):
            for node in model.walk():
                if UPSTREAM in node.attrs:
                    node.attrs[UPSTREAM] = self

    def add_listener(self, listener: Model, component_name: str) -> None:
        """Nothing: `find_listeners` does all."""

    def remove_listener(self, listener: Model, component_name: str) -> bool:
        """Nothing: there is none."""
        return False

    def to_disk(self, path: Path | str, *, exclude: Iterable[str] = ()) -> None:
        """Write the model directory, with its word vectors where they are in it already
        or `bundle_vectors` is set.
        """
        loaded = self.elmo.directory.path
        if self._bundle_vectors or (
            loaded is not None
            and Path(self.elmo.word_vectors.origin).parent == loaded.resolve()
        ):
            self.elmo.save_pretrained(path, bundle_vectors=True)
        else:
            # Such a pipeline is of this machine: it says where the word vectors are.
            write_model_directory(path, self.elmo.directory)

    def from_disk(
        self, path: Path | str, *, exclude: Iterable[str] = ()
    ) -> "ElmocComponent":
        """Take the model that `to_disk` has written.

        Raises:
            InputError: the model or its word vectors are missing.
        """
        self._path = str(path)
        self._elmo = None
        self._fingerprint = None
        # A trained pipeline reads new text.
        self._memo_words = 0
        # vectors that were written with the model stand for vectors that have moved
        if self._vectors is not None and not Path(self._vectors).exists():
            self._vectors = None
        self.elmo  # noqa: B018
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Where the model is, and its fingerprint; not the model."""
        path = os.path.realpath(self.elmo.directory.path or self._path)
        return msgspec.msgpack.encode([path, self._fingerprint])

    def from_bytes(
        self, data: bytes, *, exclude: Iterable[str] = ()
    ) -> "ElmocComponent":
        """Take the model where it was; whether it is still the same is seen when it is
        loaded.
        """
        self._path, self._fingerprint = msgspec.msgpack.decode(data)
        self._elmo = None
        return self

    def __getstate__(self) -> dict[str, Any]:
        # another process loads the model for itself
        return self.__dict__ | {"_elmo": None, "_memo": {}}


@registry.architectures("elmoc.TensorTok2Vec.v1")
def tensor_tok2vec(width: int | None = None) -> Model[list[Doc], list[Floats2d]]:
    """A layer whose output is `doc.tensor` of the component `elmoc` before it; docs
    without one go through it first.

    Args:
        width: of the tensors; None takes the component's when the pipeline is
            initialised.
    """
    return Model(
        UPSTREAM,
        _forward,
        init=_init,
        dims={"nO": width},
        attrs={UPSTREAM: None, TENSORS: ""},
    )


@registry.architectures("elmoc.TensorTok2Vec.v2")
def projected_tok2vec(width: int = 96) -> Model[list[Doc], list[Floats2d]]:
    """The tensors projected to a trained width. With `layers = "all"` of the component
    it mixes the layers, too.

    Args:
        width: of the output.
    """
    return chain_layers(tensor_tok2vec(), with_array(Maxout(width, normalize=True)))


def _init(model: Model, X: Any = None, Y: Any = None) -> None:
    if model.has_dim("nO") is None:
        model.set_dim("nO", _upstream(model).width)
    if model.attrs[UPSTREAM] is not None:
        model.attrs[TENSORS] = model.attrs[UPSTREAM].tensors


def _forward(
    model: Model, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    component = model.attrs[UPSTREAM]
    # Older pipelines do not say it.
    if component and model.attrs[TENSORS] not in ("", component.tensors):
        raise InputError(
            f"the component elmoc gives {component.tensors}, and gave "
            f"{model.attrs[TENSORS]} in training"
        )
    unread = [doc for doc in docs if len(doc) and not doc.tensor.size]
    if unread:
        _upstream(model).annotate(unread)
    width = model.get_dim("nO")
    rows = [rows_of(doc) if len(doc) else np.zeros((0, width)) for doc in docs]
    for each in rows:
        if each.shape[1] != width:
            raise InputError(
                f"doc.tensor is {each.shape[1]} wide, but the component elmoc gave "
                f"{width} in training"
            )
    return [model.ops.asarray2f(each) for each in rows], lambda gradient: []


def _upstream(model: Model) -> ElmocComponent:
    component = model.attrs[UPSTREAM]
    if component is None:
        raise InputError(
            "elmoc.TensorTok2Vec finds no component elmoc before its own: add one "
            "to the pipeline"
        )
    return component
