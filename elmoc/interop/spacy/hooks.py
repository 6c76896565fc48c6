"""Hooks: how vectors and similarities of spaCy's docs, spans and tokens become those of `doc.tensor`."""

from typing import Any

import numpy as np
from spacy.tokens import Doc

from elmoc.errors import InputError


def add_hooks(doc: Doc) -> None:
    """Let vectors and similarities of a doc, its spans and tokens be those of its tensor, whatever its vocab has.

    spaCy does not keep hooks when a doc is serialised, nor with `nlp.pipe(n_process=2)`: add them again after that.
    """
    doc.vector = doc.vector_norm = None  # which spaCy may have stored
    for hooks, vector in (
        (doc.user_token_hooks, lambda token: token.doc.tensor[token.i]),
        (doc.user_span_hooks, lambda span: _mean(span.doc.tensor[span.start : span.end])),
        (doc.user_hooks, lambda doc: _mean(doc.tensor)),
    ):
        hooks.update({"vector": vector, "has_vector": lambda of: bool(of.vector.any()), "similarity": similarity})


def _mean(rows: np.ndarray) -> np.ndarray:
    return rows.sum(axis=0) / max(1, len(rows))


def similarity(first: Any, second: Any) -> float:
    """The cosine of two vectors, 0 where one of them is zeros; spaCy's own is 1 for the same word in any context."""
    one, other = first.vector, second.vector
    if one.shape != other.shape:
        raise InputError(f"vectors of {len(one)} and {len(other)} numbers have no similarity")
    norms = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / norms if norms else 0.0
