"""Hooks: how spaCy's docs, spans and tokens get their vectors and similarities from
`doc.tensor`.
"""

import warnings
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span

from elmoc.errors import InputError


def add_hooks(doc: Doc) -> None:
    """Compute vectors and similarities of a doc, its spans and tokens from its tensor,
    whatever its vocab has.

    spaCy does not keep hooks when a doc is serialised, nor with
    `nlp.pipe(n_process=2)`: add them again after that. Raises `InputError`, as the
    hooks do, where the doc has no tensor.
    """
    rows_of(doc)
    doc.vector = doc.vector_norm = None  # which spaCy may have stored
    for hooks, vector in (
        (doc.user_token_hooks, lambda token: rows_of(token.doc)[token.i]),
        (doc.user_span_hooks, span_vector),
        (doc.user_hooks, lambda doc: _mean(rows_of(doc))),
    ):
        hooks.update(
            {
                "vector": vector,
                "has_vector": lambda of: bool(of.vector.any()),
                "similarity": similarity,
            }
        )


def rows_of(doc: Doc) -> np.ndarray:
    """float32 [n, width]: the vectors of the tokens of a doc; an `InputError` where it
    has not one for each.
    """
    rows: np.ndarray = doc.tensor
    if rows.ndim != 2 or len(rows) < len(doc):
        raise InputError(
            f"a doc of {len(doc):,} tokens has no tensor with their vectors, which DocBin does not keep: let the "
            "component elmoc read it again"
        )
    return rows[: len(doc)]  # spaCy leaves one too many where it has split a token


def span_vector(span: Span) -> np.ndarray:
    """The mean over the tokens of a span.

    spaCy asks for it while it merges the tokens, when `doc.tensor` has been shortened
    and the doc has not: it keeps the answer for good, as the vector of the merged word,
    where the vocab has vectors. It gets the mean of these. So does, with a warning,
    whoever asks once a token was split, for which spaCy lengthens the tensor by a row
    too many.
    """
    doc = span.doc
    if doc.tensor.size and doc.vocab.vectors_length:
        has_states = [not token.is_space for token in doc]
        if not np.array_equal(doc.tensor.any(axis=-1), has_states):
            if len(doc.tensor) >= len(doc):
                what = "a token was split behind elmoc: vectors of spans are means of the vocab's"
                warnings.warn(what, stacklevel=2)
            return _mean(np.stack([doc.vocab.get_vector(token.orth) for token in span]))
    return _mean(rows_of(doc)[span.start : span.end])


def _mean(rows: np.ndarray) -> np.ndarray:
    return rows.sum(axis=0) / max(1, len(rows))


def similarity(first: Any, second: Any) -> float:
    """The cosine of two vectors, 0 where one of them is zeros; spaCy's own is 1 for the
    same word in any context.
    """
    one = first.vector
    other = second.vector
    if one.shape != other.shape:
        raise InputError(
            f"vectors of {len(one)} and {len(other)} numbers have no similarity"
        )
    norms = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / norms if norms else 0.0
