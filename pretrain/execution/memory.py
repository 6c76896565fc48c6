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
    """Bytes, roughly, that one process of a run takes on a device, which so many `processes` share.

    All but scoring, which is rank 0's alone.
    """

    device: torch.device
    weights: int = 0
    activations: int = 0
    tables: int = 0
    streaming: int = 0
    text: int = 0
    scoring: int = 0
    processes: int = 1
    keeps_activations: bool = False
    """Whether evaluations run beside the activations of updates: a CUDA graph does not give its memory back."""

    @property
    def bytes(self) -> int:
        """What all processes take at the peak: updates and evaluations take turns, but for `keeps_activations`."""
        always = self.processes * (self.weights + self.tables + self.streaming + self.text)
        of_updates = self.processes * self.activations
        return always + (of_updates + self.scoring if self.keeps_activations else max(of_updates, self.scoring))

    def __str__(self) -> str:
        parts = {
            "weights, gradients and optimiser": self.processes * self.weights,
            "activations (train.streams × train.window)": self.processes * self.activations,
            "vector tables (data.tables_on_device)": self.processes * self.tables,
            "batches made ahead (train.streams × train.window)": self.processes * self.streaming,
            "shuffled text (train.mix_shards)": self.processes * self.text,
            "scoring (evaluation.words, evaluation.candidates)": self.scoring,
        }
        shown = ", ".join(f"{what} {human_bytes(size)}" for what, size in parts.items() if size)
        together = f" for its {self.processes} processes" if self.processes > 1 else ""
        return f"about {human_bytes(self.bytes)} on {self.device}{together}: {shown}"

    def require(self) -> None:
        """Raise an `InputError` when the device has less."""
        free = free_memory(self.device)
        if self.bytes > free:
            raise OutOfMemory(
                f"the run needs {self}; {human_bytes(free)} are free: use smaller sizes, or a machine with more memory"
            )
