"""Contextual word representations pretrained with continuous outputs (ELMo-C): load a
model and use it.

from elmoc import ElmoC
elmo = ElmoC.from_pretrained("runs/quickstart/run")
states = elmo.embed(["The", "cat", "sat", "."])  # a tensor [L + 1, n, 2P]
"""

from typing import TYPE_CHECKING, Any

from elmoc.version import VERSION as __version__

if TYPE_CHECKING:
    from elmoc.features.reader import FeatureFile
    from elmoc.model import ElmoC
    from elmoc.modules import ElmoEmbedding
    from elmoc.word_vectors.opening import open_word_vectors

__all__ = ["ElmoC", "ElmoEmbedding", "FeatureFile", "__version__", "open_word_vectors"]

_MODULES = {
    "ElmoC": "elmoc.model",
    "ElmoEmbedding": "elmoc.modules",
    "FeatureFile": "elmoc.features.reader",
    "open_word_vectors": "elmoc.word_vectors.opening",
}


def __getattr__(name: str) -> Any:
    """Import a public name's module when the name is first used, so that `import elmoc`
    stays light.
    """
    if name not in _MODULES:
        raise AttributeError(f"module 'elmoc' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)
