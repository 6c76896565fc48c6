"""elmoc: use contextual word representations pretrained with continuous outputs (ELMo-C).

from elmoc import load_model
model = load_model("runs/quickstart/run")
states = model.layer_states([["The", "cat", "sat", "."]])  # a list of [L + 1, n, 2P] tensors
"""

from typing import TYPE_CHECKING, Any

from elmoc.version import VERSION as __version__

if TYPE_CHECKING:
    from elmoc.feature_file import FeatureFile
    from elmoc.model import ContextualEncoder, load_model
    from elmoc.word_vectors import open_word_vectors

__all__ = ["ContextualEncoder", "FeatureFile", "__version__", "load_model", "open_word_vectors"]

_HOMES = {
    "ContextualEncoder": "elmoc.model",
    "FeatureFile": "elmoc.feature_file",
    "load_model": "elmoc.model",
    "open_word_vectors": "elmoc.word_vectors",
}


def __getattr__(name: str) -> Any:
    """Import a public name's module when the name is first used, so that `import elmoc` stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'elmoc' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
