"""Feature dataset: the sentences of a feature file as tensors, for PyTorch's
`DataLoader` and its workers.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

from elmoc.features.reader import FeatureFile


class FeatureDataset(Dataset[Tensor]):
    """The layer states of a feature file, float32 [L + 1, n, 2P] a sentence, by its
    index.

    A file of one layer gives [1, n, 2P]. Each process opens the file for itself,
    when it first reads from it. The pages that are read are the system's, and shared.
    """

    def __init__(self, path: Path | str) -> None:
        self.file = FeatureFile(path)

    def __len__(self) -> int:
        return len(self.file)

    def __getitem__(self, index: int) -> Tensor:
        # float16 saves disk and page cache; networks compute in float32.
        states = torch.from_numpy(self.file[index].astype("float32", copy=False))
        return states if states.ndim == 3 else states.unsqueeze(0)


def pad_states(sentences: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """One batch of sentences: [B, L + 1, T, 2P] with zeros behind the end of each, and
    the lengths, int64 [B].

    For `DataLoader(…, collate_fn=pad_states)`.
    """
    lengths = torch.tensor([each.shape[1] for each in sentences], device="cpu")
    words_first = [states.transpose(0, 1) for states in sentences]
    return pad_sequence(words_first, batch_first=True).transpose(1, 2), lengths
