"""Contextual word representations pretrained with continuous outputs (ELMo-C): load a
model and use it.

    from elmoc import ElmoC
    elmo = ElmoC.from_pretrained("runs/quickstart/run")
    states = elmo.embed(["The", "cat", "sat", "."])  # a tensor [L + 1, n, 2P]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from elmoc.version import VERSION as __version__

if TYPE_CHECKING:
    from elmoc.features.dump import dump_features
    from elmoc.features.options import DumpOptions
    from elmoc.features.reader import FeatureFile
    from elmoc.model import ElmoC
    from elmoc.modules import ElmoEmbedding
    from elmoc.text.documents import read_documents
    from elmoc.word_vectors.opening import open_word_vectors

__all__ = [
    "DumpOptions",
    "ElmoC",
    "ElmoEmbedding",
    "FeatureFile",
    "__version__",
    "dump_features",
    "open_word_vectors",
    "read_documents",
]

_MODULES = {
    "DumpOptions": "elmoc.features.options",
    "ElmoC": "elmoc.model",
    "ElmoEmbedding": "elmoc.modules",
    "FeatureFile": "elmoc.features.reader",
    "dump_features": "elmoc.features.dump",
    "open_word_vectors": "elmoc.word_vectors.opening",
    "read_documents": "elmoc.text.documents",
}


def __getattr__(name: str) -> Any:
    """Import a public name's module when the name is first used, so that `import elmoc`
    stays light.
    """
    if name not in _MODULES:
        raise AttributeError(f"module 'elmoc' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
