"""Contextual word representations pretrained with continuous outputs (ELMo-C): load a model and use it.

from elmoc import load_model
model = load_model("runs/quickstart/run")
states = model.layer_states([["The", "cat", "sat", "."]])  # a list of [L + 1, n, 2P] tensors
"""

from typing import TYPE_CHECKING, Any

from elmoc.version import VERSION as __version__

if TYPE_CHECKING:
    from elmoc.features.reader import FeatureFile
    from elmoc.model import SentenceEncoder, load_model
    from elmoc.word_vectors.sources import open_word_vectors

__all__ = ["FeatureFile", "SentenceEncoder", "__version__", "load_model", "open_word_vectors"]

_MODULES = {
    "SentenceEncoder": "elmoc.model",
    "FeatureFile": "elmoc.features.reader",
    "load_model": "elmoc.model",
    "open_word_vectors": "elmoc.word_vectors.sources",
}


def __getattr__(name: str) -> Any:
    """Import a public name's module when the name is first used, so that `import elmoc` stays light."""
    if name not in _MODULES:
        raise AttributeError(f"module 'elmoc' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)
