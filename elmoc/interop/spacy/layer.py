"""Layer: `elmoc.TensorTok2Vec.v1`, by which a trained pipe of spaCy reads what the component `elmoc` computes."""

from collections.abc import Callable
from typing import Any

import numpy as np
from spacy import registry
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from elmoc.errors import InputError
from elmoc.interop.spacy.component import UPSTREAM, ElmocComponent


@registry.architectures("elmoc.TensorTok2Vec.v1")
def tensor_tok2vec(width: int | None = None) -> Model[list[Doc], list[Floats2d]]:
    """A layer whose output is `doc.tensor` of the component `elmoc` before it; docs without one go through it first.

    Args:
        width: that of the tensors; None: what the component says when the pipeline is initialised.
    """
    return Model(UPSTREAM, _forward, init=_init, dims={"nO": width}, attrs={UPSTREAM: None})


def _init(model: Model, X: Any = None, Y: Any = None) -> None:
    if model.has_dim("nO") is None:
        model.set_dim("nO", _upstream(model).width)


def _forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    if empty := [doc for doc in docs if len(doc) and not doc.tensor.size]:
        _upstream(model).annotate(empty)
    width = model.get_dim("nO")
    for doc in docs:
        if len(doc) and doc.tensor.shape[1] != width:
            raise InputError(
                f"doc.tensor is {doc.tensor.shape[1]} wide, but the component elmoc gave {width} in training"
            )
    return [model.ops.asarray2f(doc.tensor if len(doc) else np.zeros((0, width))) for doc in docs], _no_gradient


def _upstream(model: Model) -> ElmocComponent:
    component = model.attrs[UPSTREAM]
    if component is None:
        raise InputError("elmoc.TensorTok2Vec.v1 finds no component elmoc before its own: add one to the pipeline")
    return component


def _no_gradient(gradient: Any) -> list:
    return []
