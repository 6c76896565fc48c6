"""The `bilm` layout of feature files: that of bilm-tf's `dump_bilm_embeddings`.

One contiguous dataset `(L + 1, n, 2P)` a sentence, its key the line number as a string from "0", and nothing else:
readers count the datasets. A file of one layer has `(1, n, 2P)`.
"""

from typing import Any

import numpy as np

from elmoc.errors import InputError
from elmoc.features.layouts.allennlp import AllennlpReader, AllennlpWriter
from elmoc.features.layouts.interface import Rows
from elmoc.files.hdf5 import CheckedFile


class BilmReader(AllennlpReader):
    """The `LayoutReader`."""

    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None:
        super().__init__(file, attributes)
        self._is_single = bool(attributes.get("single", False)) and self.layers == 1

    def view(self, index: int, rows: Rows) -> np.ndarray:
        array = super().view(index, rows)
        return array[0] if self._is_single and len(array) == 1 else array

    def lines(self) -> dict[str, int]:
        raise InputError(
            f"{self._file.path}: the bilm layout has no map of sentences: ask for them by their number, or write the "
            "allennlp layout"
        )


class BilmWriter(AllennlpWriter):
    """The `LayoutWriter`."""

    _layers_axis = 0
    _has_map = False
