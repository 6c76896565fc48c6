"""Contextual word representations pretrained with continuous outputs (ELMo-C): load a
model and use it.

    from elmoc import ElmoC
    elmo = ElmoC.from_pretrained("runs/quickstart/run")
    states = elmo.embed(["The", "cat", "sat", "."])  # a tensor [L + 1, n, 2P]
"""

from typing import TYPE_CHECKING

import lazy_loader

from elmoc.version import VERSION as __version__

if TYPE_CHECKING:
    from elmoc.features.dump import dump_features
    from elmoc.features.options import DumpOptions
    from elmoc.features.reader import FeatureFile
    from elmoc.model import ElmoC
    from elmoc.modules import ElmoEmbedding
    from elmoc.text.documents import read_documents
    from elmoc.word_vectors.opening import open_word_vectors

# Modules are imported when their names are first used, so that commands are quick.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "features.dump": ["dump_features"],
        "features.options": ["DumpOptions"],
        "features.reader": ["FeatureFile"],
        "model": ["ElmoC"],
        "modules": ["ElmoEmbedding"],
        "text.documents": ["read_documents"],
        "word_vectors.opening": ["open_word_vectors"],
    },
)
