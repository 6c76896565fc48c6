"""The memory that a run takes, compared with what there is before anything of that size is made."""

from dataclasses import dataclass

import torch

from elmoc.devices import free_memory
from elmoc.errors import InputError
from elmoc.files.writing import human_bytes

BYTES_OF_A_SHUFFLED_TOKEN = 40


class OutOfMemory(InputError):
    """A run needs more memory than there is."""


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes, roughly, that one process of a run takes on a device."""

    device: torch.device
    weights: int = 0
    activations: int = 0
    tables: int = 0
    text: int = 0
    scoring: int = 0

    @property
    def bytes(self) -> int:
        """All of it at the peak: updates and evaluations take turns."""
        return self.weights + self.tables + self.text + max(self.activations, self.scoring)

    def __str__(self) -> str:
        parts = {
            "weights, gradients and Adam": self.weights,
            "activations (train.streams × train.window)": self.activations,
            "vector tables (data.tables_on_device)": self.tables,
            "shuffled text (train.mix_shards)": self.text,
            "scoring (evaluation.words, evaluation.candidates)": self.scoring,
        }
        shown = ", ".join(f"{what} {human_bytes(size)}" for what, size in parts.items() if size)
        return f"about {human_bytes(self.bytes)} on {self.device}: {shown}"

    def require(self) -> None:
        """Raise an `InputError` when the device has less."""
        free = free_memory(self.device)
        if self.bytes > free:
            raise OutOfMemory(
                f"the run needs {self}; {human_bytes(free)} are free: use smaller sizes, or a machine with more memory"
            )
