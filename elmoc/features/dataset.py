"""Feature dataset: the sentences of a feature file as tensors, for PyTorch's
`DataLoader` and its workers.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import Dataset

from elmoc.features.reader import FeatureFile


class FeatureDataset(Dataset[Tensor]):
    """The layer states of a feature file, float32 [L + 1, n, 2P] a sentence, by its
    index.

    A file of one layer gives [1, n, 2P]. With `select`, it is only these sentences, in
    this order, e.g. a task's training part. Each process opens the file for itself,
    when it first reads from it. The pages that are read are the system's, and shared.
    """

    def __init__(self, path: Path | str, select: Sequence[int] | None = None) -> None:
        self.file = FeatureFile(path)
        self.select = range(len(self.file)) if select is None else select

    def __len__(self) -> int:
        return len(self.select)

    def __getitem__(self, index: int) -> Tensor:
        # float16 saves disk and page cache; networks compute in float32.
        array = self.file[self.select[index]].astype("float32", copy=False)
        states = torch.from_numpy(array)
        return states if states.ndim == 3 else states.unsqueeze(0)


def pad_states(sentences: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """One batch of sentences: [B, L + 1, T, 2P] with zeros behind the end of each, and
    the lengths, int64 [B].

    For `DataLoader(…, collate_fn=pad_states)`.
    """
    lengths = torch.tensor([states.shape[1] for states in sentences])
    # All sentences of a file have the same layers and width.
    layers, _, width = sentences[0].shape
    batch = torch.zeros(len(sentences), layers, int(lengths.max()), width)
    for row, states in zip(batch, sentences, strict=True):
        row[:, : states.shape[1]] = states
    return batch, lengths
