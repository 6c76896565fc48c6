"""Identities of inputs: the strings that are equal for equal word vectors or layer states in lines of results."""

import json
from typing import Any


def encoder_identity(features: dict[str, Any]) -> str:
    """Equal for what lines of results say about layer states of the same model; foreign files are known by name."""
    if "model" in features:
        return json.dumps(
            [features.get(name) for name in ("model", "word_vectors", "layers")], sort_keys=True, ensure_ascii=False
        )
    return str(features.get("file"))


def word_vectors_identity(vectors: dict[str, Any]) -> str:
    """Equal for what lines of results say about the same word vectors."""
    return str(vectors["fingerprint"])
