from .features.dump import dump_features
from .features.options import DumpOptions
from .features.reader import FeatureFile
from .model import ElmoC
from .modules import ElmoEmbedding
from .text.documents import read_documents
from .word_vectors.opening import open_word_vectors

__all__ = [
    "DumpOptions",
    "ElmoC",
    "ElmoEmbedding",
    "FeatureFile",
    "dump_features",
    "open_word_vectors",
    "read_documents",
]
__version__: str
