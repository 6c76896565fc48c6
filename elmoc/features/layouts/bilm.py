"""The `bilm` layout of feature files: that of bilm-tf's `dump_bilm_embeddings`.

One contiguous dataset `(L + 1, n, 2P)` a sentence, its key the line number as a string from "0", and nothing else:
readers count the datasets. A file of one layer has `(1, n, 2P)`.
"""

from typing import Any

import numpy as np

from elmoc.features.layouts.allennlp import AllennlpReader, AllennlpWriter
from elmoc.files.hdf5 import CheckedFile


class BilmReader(AllennlpReader):
    """Reads the `bilm` layout."""

    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None:
        super().__init__(file, attributes)
        self._is_single = bool(attributes.get("single", False)) and self.layers == 1

    def view(self, index: int) -> np.ndarray:
        array = super().view(index)
        return array[0] if self._is_single else array


class BilmWriter(AllennlpWriter):
    """Writes the `bilm` layout."""

    layers_axis = 0
    has_map = False
