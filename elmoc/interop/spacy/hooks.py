"""Hooks: how spaCy's docs, spans and tokens get their vectors and similarities from
`doc.tensor`.
"""

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
    # spaCy may have stored a vector of its own
    doc.vector = None
    doc.vector_norm = None
    for hooks, vector in (
        (doc.user_token_hooks, lambda token: rows_of(token.doc)[token.i]),
        (doc.user_span_hooks, span_vector),
        (doc.user_hooks, lambda doc: _mean(rows_of(doc))),
    ):
        hooks["vector"] = vector
        hooks["has_vector"] = lambda of: bool(of.vector.any())
        hooks["similarity"] = similarity


def rows_of(doc: Doc) -> np.ndarray:
    """float32 [n, width]: the vectors of the tokens of a doc.

    Raises:
        InputError: the doc lacks a vector for each token.
    """
    rows: np.ndarray = doc.tensor
    if rows.ndim != 2 or len(rows) < len(doc):
        raise InputError(
            f"a doc of {len(doc):,} tokens has no tensor with their vectors, which "
            "DocBin does not keep: let the component elmoc read it again"
        )
    # spaCy leaves a row too many where it has split a token
    return rows[: len(doc)]


def span_vector(span: Span) -> np.ndarray:
    """The mean over the tokens of a span."""
    doc = span.doc
    # While spaCy merges the tokens of a span, `doc.tensor` is shorter than the doc, and
    # where the vocab has vectors it keeps the answer for good, as the vector of the
    # merged word: the answer is the mean of the vocab's vectors.
    if doc.vocab.vectors_length and 0 < len(doc.tensor) < len(doc):
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
